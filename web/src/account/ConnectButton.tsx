import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { lazy, Suspense, useEffect, useRef, type JSX } from "react";

import { useWallets } from "../ethereum/WalletProvider";
import { IconWallet } from "../ui/icons";
import { takeEarly, type ConnectPlace } from "./EarlyConnect";
import { useOwners } from "./OwnerProvider";

// Loaded on demand: a first visit shows neither.
const ConnectDialog = lazy(() => import("./ConnectDialog"));
const OwnerMenu = lazy(() => import("./OwnerMenu"));

/** Connects a wallet or unlocks a key; once connected, shows the account. */
export function ConnectButton({ place, size = "sm" }: { place: ConnectPlace; size?: string }): JSX.Element {
  const { isRestoring } = useWallets();
  const { owner } = useOwners();
  const [isOpen, { open, close }] = useDisclosure(false);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const early = takeEarly(place);
    if (early === undefined) return;
    button.current?.focus();
    if (early.isPressed) open();
  }, [place, open]);
  const leave = (): void => {
    close();
    button.current?.focus();
  };
  return (
    <>
      {owner === undefined ? (
        <Button ref={button} size={size} leftSection={<IconWallet size={18} aria-hidden />} onClick={open} loading={isRestoring}>
          Connect wallet
        </Button>
      ) : (
        <Suspense>
          <OwnerMenu owner={owner} onOther={open} />
        </Suspense>
      )}
      {isOpen && (
        <Suspense>
          <ConnectDialog onClose={leave} />
        </Suspense>
      )}
    </>
  );
}
