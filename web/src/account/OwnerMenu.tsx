import { Avatar, Button, Checkbox, Menu, Modal, Stack, Text, VisuallyHidden } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { formatAccount, type AccountId } from "@fastpay/sdk";
import { useState, type JSX } from "react";
import { Link } from "react-router";

import { useWallets, type ConnectedWallet } from "../ethereum/WalletProvider";
import { useKeys } from "../keys/KeysProvider";
import { saveKey } from "../keys/SaveKey";
import { IconChevronDown, IconDownload, IconKey, IconLock, IconLogout, IconReceipt2, IconSwitchHorizontal, IconTrash } from "../ui/icons";
import { shorten } from "../ui/words";
import { useOwners, type Owner } from "./OwnerProvider";

/** Shows the current account and its actions. */
export default function OwnerMenu({ owner, onOther }: { owner: Owner; onOther: () => void }): JSX.Element {
  const { disconnect } = useWallets();
  const { useKey } = useOwners();
  const { account, isKey, ethereum } = owner;
  const text = formatAccount(account);
  const [isRemoving, { open: remove, close: keep }] = useDisclosure(false);
  const leave = (): void => {
    useKey(undefined);
    disconnect();
  };
  return (
    <>
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <Button variant="default" leftSection={<Face owner={owner} />} rightSection={<IconChevronDown size={16} aria-hidden />} title={text}>
          <VisuallyHidden>Account </VisuallyHidden>
          {shorten(text, 6, 4)}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{isKey ? "A browser key" : ethereum?.wallet.name}</Menu.Label>
        <Menu.Item component={Link} to={`/explore/account/${text}`} leftSection={<IconReceipt2 size={16} aria-hidden />}>
          Show this account in the explorer
        </Menu.Item>
        {isKey && <KeyItems account={account} onRemove={remove} />}
        <Menu.Item leftSection={<IconSwitchHorizontal size={16} aria-hidden />} onClick={onOther}>
          Switch account
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} aria-hidden />} onClick={leave}>
          Disconnect
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
    {isRemoving && <RemoveDialog account={account} onClose={keep} />}
    </>
  );
}

function Face({ owner: { isKey, ethereum } }: { owner: Owner }): JSX.Element {
  if (isKey) return <IconKey size={18} aria-hidden />;
  const { wallet } = ethereum as ConnectedWallet;
  return <Avatar src={wallet.icon ?? null} size={20} radius="sm" alt="" name={wallet.name} aria-hidden />;
}

function KeyItems({ account, onRemove }: { account: AccountId; onRemove: () => void }): JSX.Element {
  const { files, isUnlocked, lock } = useKeys();
  const file = files.find((one) => one.account === account);
  return (
    <>
      {isUnlocked(account) && (
        <Menu.Item leftSection={<IconLock size={16} aria-hidden />} onClick={() => lock(account)}>
          Lock
        </Menu.Item>
      )}
      <Menu.Item leftSection={<IconDownload size={16} aria-hidden />} onClick={() => file && saveKey(file)}>
        Save the key file
      </Menu.Item>
      <Menu.Item leftSection={<IconTrash size={16} aria-hidden />} onClick={onRemove}>
        Remove the key from this browser
      </Menu.Item>
    </>
  );
}

function RemoveDialog({ account, onClose }: { account: AccountId; onClose: () => void }): JSX.Element {
  const { forget } = useKeys();
  const { useKey } = useOwners();
  const [isSafe, setSafe] = useState(false);
  const remove = (): void => {
    onClose();
    useKey(undefined);
    forget(account);
  };
  return (
    <Modal opened onClose={onClose} title="Remove the key" centered>
      <Stack>
        <Text size="sm">Without its file and passphrase nobody can use this account any more, and what it holds is lost.</Text>
        <Checkbox
          checked={isSafe}
          onChange={(event) => setSafe(event.currentTarget.checked)}
          label="I have the key file and its passphrase, or the account is empty"
        />
        <Button color="red" disabled={!isSafe} onClick={remove}>
          Remove the key
        </Button>
      </Stack>
    </Modal>
  );
}
