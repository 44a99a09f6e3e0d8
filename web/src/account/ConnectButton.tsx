import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { lazy, Suspense, type JSX } from "react";

import { useWallets } from "../ethereum/WalletProvider";
import { IconWallet } from "../ui/icons";
import { useOwners } from "./OwnerProvider";

// Their code is loaded when it is needed: a first visit shows neither.
const ConnectDialog = lazy(() => import("./ConnectDialog"));
const OwnerMenu = lazy(() => import("./OwnerMenu"));

/** Connects a wallet or unlocks a key; once connected, shows the account. */
export function ConnectButton({ size = "sm" }: { size?: string }): JSX.Element {
  const { isRestoring } = useWallets();
  const { owner } = useOwners();
  const [isOpen, { open, close }] = useDisclosure(false);
  return (
    <>
      {owner === undefined ? (
        <Button size={size} leftSection={<IconWallet size={18} aria-hidden />} onClick={open} loading={isRestoring}>
          Connect wallet
        </Button>
      ) : (
        <Suspense>
          <OwnerMenu owner={owner} onOther={open} />
        </Suspense>
      )}
      {isOpen && (
        <Suspense>
          <ConnectDialog onClose={close} />
        </Suspense>
      )}
    </>
  );
}
