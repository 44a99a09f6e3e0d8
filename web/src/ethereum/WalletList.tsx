import { Avatar, Button, Modal, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState, type JSX, type ReactNode } from "react";
import { Link } from "react-router";

import { ErrorAlert } from "../ui/ErrorAlert";
import { IconWallet } from "../ui/icons";
import { DeepLinks } from "./DeepLinks";
import type { FoundWallet } from "./discovery";
import { useWallets } from "./WalletProvider";

/** The Ethereum wallets of this browser, to connect one. */
export function WalletList({ onConnected }: { onConnected: () => void }): JSX.Element {
  const { found, connect } = useWallets();
  const [busy, setBusy] = useState<FoundWallet>();
  const [error, setError] = useState<unknown>();
  const choose = async (wallet: FoundWallet): Promise<void> => {
    setError(undefined);
    setBusy(wallet);
    try {
      await connect(wallet);
      onConnected();
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(undefined);
    }
  };
  return (
    <Stack>
      {found.length === 0 && (
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
