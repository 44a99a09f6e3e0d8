import { Avatar, Button, Menu, Modal, Stack, Text, VisuallyHidden } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { formatAccount } from "@fastpay/sdk";
import { useState, type JSX } from "react";
import { Link } from "react-router";

import { ErrorAlert } from "../ui/ErrorAlert";
import { shorten } from "../ui/words";
import type { FoundWallet } from "./discovery";
import { useWallets } from "./WalletProvider";
import { IconChevronDown, IconLogout, IconReceipt2, IconWallet } from "../ui/icons";

/** Connects a wallet, or says which one is. */
export function ConnectButton({ size = "sm" }: { size?: string }): JSX.Element {
  const { connected, isRestoring } = useWallets();
  const [isOpen, { open, close }] = useDisclosure(false);
  if (connected !== undefined) return <ConnectedMenu />;
  return (
    <>
      <Button size={size} leftSection={<IconWallet size={18} aria-hidden />} onClick={open} loading={isRestoring}>
        Connect wallet
      </Button>
      <Modal opened={isOpen} onClose={close} title="Connect a wallet" centered>
        <WalletList onConnected={close} />
      </Modal>
    </>
  );
}

function WalletList({ onConnected }: { onConnected: () => void }): JSX.Element {
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
        <Text>
          No wallet was found in this browser. Install one that has an Ethereum key, or open this page in a wallet&apos;s own
          browser. You can <Link to="/explore">explore</Link> without one.
        </Text>
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
      <Text size="sm" c="dimmed">
        The wallet shows every payment before you sign it. This page never sees its key.
      </Text>
    </Stack>
  );
}

function ConnectedMenu(): JSX.Element | null {
  const { connected, disconnect } = useWallets();
  if (connected === undefined) return null;
  const { address, account, wallet } = connected;
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <Button
          variant="default"
          leftSection={<Avatar src={wallet.icon ?? null} size={20} radius="sm" alt="" name={wallet.name} aria-hidden />}
          rightSection={<IconChevronDown size={16} aria-hidden />}
          title={address}
        >
          <VisuallyHidden>Account </VisuallyHidden>
          {shorten(address, 6, 4)}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{wallet.name}</Menu.Label>
        <Menu.Item
          component={Link}
          to={`/explore/account/${formatAccount(account)}`}
          leftSection={<IconReceipt2 size={16} aria-hidden />}
        >
          See this account as others do
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} aria-hidden />} onClick={disconnect}>
          Disconnect
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
