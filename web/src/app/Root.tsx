import { Box, Text } from "@mantine/core";
import { lazy, Suspense, type JSX, type ReactNode } from "react";
import { Link } from "react-router";

import { ConnectButton } from "../account/ConnectButton";
import { OwnerProvider, useOwners } from "../account/OwnerProvider";
import { ActivityProvider } from "../activity/ActivityProvider";
import { WalletProvider } from "../ethereum/WalletProvider";
import { WrongNetwork } from "../ethereum/WrongNetwork";
import { KeysProvider } from "../keys/KeysProvider";
import { NetworkProvider, useNetwork } from "../network/NetworkProvider";
import { shorten } from "../ui/words";
import { Shell } from "./Shell";

const LiveEvents = lazy(() => import("./LiveEvents"));

/** The providers and the frame around every page: the deployment, the wallet, the activities. */
export function Root({ children }: { children: ReactNode }): JSX.Element {
  return (
    <NetworkProvider>
      <WalletProvider>
        <KeysProvider>
          <OwnerProvider>
            <ActivityProvider>
              <Shell account={<ConnectButton place="header" />}>
                <WrongNetwork />
                {children}
                <Deployment />
              </Shell>
              <OwnersEvents />
            </ActivityProvider>
          </OwnerProvider>
        </KeysProvider>
      </WalletProvider>
    </NetworkProvider>
  );
}

function OwnersEvents(): JSX.Element {
  const { owner } = useOwners();
  return <Suspense>{owner !== undefined && <LiveEvents account={owner.account} />}</Suspense>;
}

/** The deployment, for comparison. */
function Deployment(): JSX.Element {
  const { config } = useNetwork();
  return (
    <Box component="footer" mt="xl" pt="md">
      <Text size="xs" c="dimmed" ta="center">
        {config.ledger === undefined ? `${config.chainName} (chain ${config.chainId}) · contract ` : `Committee ${config.ledger.committee} on a ledger · domain `}
        <span title={config.contract}>{shorten(config.contract, 8, 6)}</span>{" "}
        · <Link to="/network">What this page trusts</Link> · <Link to="/help">Help</Link>
      </Text>
    </Box>
  );
}
