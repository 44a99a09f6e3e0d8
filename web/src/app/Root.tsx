import type { JSX, ReactNode } from "react";

import { OwnerProvider } from "../account/OwnerProvider";
import { ActivityProvider } from "../activity/ActivityProvider";
import { WalletProvider } from "../ethereum/WalletProvider";
import { KeysProvider } from "../keys/KeysProvider";
import { NetworkProvider } from "../network/NetworkProvider";
import { Shell } from "./Shell";

/** The providers around every page: the deployment, the wallet, the activities. */
export function Root({ children }: { children: ReactNode }): JSX.Element {
  return (
    <NetworkProvider>
      <WalletProvider>
        <KeysProvider>
          <OwnerProvider>
            <ActivityProvider>
              <Shell>{children}</Shell>
            </ActivityProvider>
          </OwnerProvider>
        </KeysProvider>
      </WalletProvider>
    </NetworkProvider>
  );
}
