import { Avatar, Button, Modal, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { lazy, Suspense, useState, type JSX, type ReactNode } from "react";
import { Link } from "react-router";

import { ErrorAlert } from "../ui/ErrorAlert";
import { IconWallet } from "../ui/icons";
import { DeepLinks } from "./DeepLinks";
import type { FoundWallet } from "./discovery";
import { useWallets } from "./WalletProvider";

const QrCode = lazy(() => import("../ui/Qr").then((module) => ({ default: module.QrCode })));

/** The Ethereum wallets of this browser, to connect one. */
export function WalletList({ onConnected }: { onConnected: () => void }): JSX.Element {
  const { found, connect } = useWallets();
  const [busy, setBusy] = useState<FoundWallet>();
  const [error, setError] = useState<unknown>();
  const [uri, setUri] = useState<string>();
  const isAlone = found.every(({ remote }) => remote !== undefined);
  const choose = async (wallet: FoundWallet): Promise<void> => {
    setError(undefined);
    setBusy(wallet);
    const stop = wallet.remote?.onUri(setUri);
    try {
      await connect(wallet);
      onConnected();
    } catch (thrown) {
      setError(thrown);
    } finally {
      stop?.();
      setUri(undefined);
      setBusy(undefined);
    }
  };
  return (
    <Stack>
      {isAlone && (
        <>
          <Text>
            No wallet was found in this browser. Install one that has an Ethereum key, or open this page in a wallet&apos;s own
            browser. You can <Link to="/explore">explore</Link> without one.
          </Text>
          <DeepLinks />
        </>
      )}
      {found.map((wallet) => (
        <Button
          key={wallet.id}
          variant="default"
          size="lg"
          justify="flex-start"
          leftSection={<Avatar src={wallet.icon ?? null} size={28} radius="sm" alt="" name={wallet.name} />}
          loading={busy === wallet}
          onClick={() => void choose(wallet)}
        >
          {wallet.name}
        </Button>
      ))}
      {uri !== undefined && (
        <Stack align="center" gap="xs">
          <Suspense>
            <QrCode text={uri} label="QR code for a wallet on another device" />
          </Suspense>
          <Text size="sm">
            Read the code with your wallet, or <a href={uri}>open a wallet on this device</a>.
          </Text>
        </Stack>
      )}
      <ErrorAlert error={error} />
      {found.length > 0 && (
        <Text size="sm" c="dimmed">
          The wallet shows every payment before you sign it. This page never sees its key.
        </Text>
      )}
    </Stack>
  );
}

/** Connects an Ethereum wallet beside a key, for deposits and transactions. */
export function ConnectEthereum({ children, size = "sm" }: { children: ReactNode; size?: string }): JSX.Element {
  const [isOpen, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button size={size} variant="default" leftSection={<IconWallet size={16} aria-hidden />} onClick={open}>
        {children}
      </Button>
      <Modal opened={isOpen} onClose={close} title="Connect an Ethereum wallet" centered>
        <WalletList onConnected={close} />
      </Modal>
    </>
  );
}
