import type { JSX } from "react";

import { ActivityProvider } from "../activity/ActivityProvider";
import { WalletProvider } from "../ethereum/WalletProvider";
import { NetworkProvider } from "../network/NetworkProvider";
import { Shell } from "./Shell";

/** What every page stands on: the deployment, then the wallet, then the work under way. */
export function Root(): JSX.Element {
  return (
    <NetworkProvider>
      <WalletProvider>
        <ActivityProvider>
          <Shell />
        </ActivityProvider>
      </WalletProvider>
    </NetworkProvider>
  );
}
