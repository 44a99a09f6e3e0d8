import { Button, Divider, Group, Modal, Stack, Text } from "@mantine/core";
import type { AccountId } from "@fastpay/sdk";
import { useState, type JSX } from "react";

import { WalletList } from "../ethereum/WalletList";
import { ImportKey } from "../keys/ImportKey";
import { useKeys } from "../keys/KeysProvider";
import { NewKey } from "../keys/NewKey";
import { NoKeysHere, useCanKeepKeys } from "../keys/NoKeysHere";
import { useNetwork } from "../network/NetworkProvider";
import { IconKey } from "../ui/icons";
import { shortAccount } from "../ui/words";
import { useOwners } from "./OwnerProvider";

const TITLES = { choose: "Connect a wallet", new: "Create a key", import: "Import a key" };

/** All ways to connect an account. */
export default function ConnectDialog({ onClose }: { onClose: () => void }): JSX.Element {
  const { useKey } = useOwners();
  const [way, setWay] = useState<keyof typeof TITLES>("choose");
  const canKeep = useCanKeepKeys() !== false;
  const take = ({ account }: { account: AccountId }): void => {
    useKey(account);
    onClose();
  };
  return (
    <Modal opened onClose={onClose} title={TITLES[way]} centered>
      {way === "new" && <NewKey onDone={take} />}
      {way === "import" && <ImportKey onDone={take} />}
      {way === "choose" && (
        <Stack>
          <WalletList
            onConnected={() => {
              useKey(undefined);
              onClose();
            }}
          />
          <Divider label="or use a browser key" labelPosition="center" />
          <NoKeysHere />
          <KeyList onChosen={(account) => take({ account })} />
          <Group grow>
            <Button variant="default" disabled={!canKeep} onClick={() => setWay("new")}>
              Create a key
            </Button>
            <Button variant="default" disabled={!canKeep} onClick={() => setWay("import")}>
              Import a key file
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}

function KeyList({ onChosen }: { onChosen: (account: AccountId) => void }): JSX.Element {
  const { files } = useKeys();
  const { ledger } = useNetwork().config;
  if (files.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        Without an Ethereum wallet, create a browser key. It is stored encrypted under a passphrase. It can receive, pay
        and redeem.{ledger === undefined && <> Deposits need an Ethereum wallet: yours or somebody else&apos;s.</>}
      </Text>
    );
  }
  return (
    <>
      {files.map(({ account }) => (
        <Button
          key={account}
          variant="default"
          size="lg"
          justify="flex-start"
          leftSection={<IconKey size={24} aria-hidden />}
          onClick={() => onChosen(account)}
        >
          {shortAccount(account)}
        </Button>
      ))}
    </>
  );
}
