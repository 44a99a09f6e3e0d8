import { Button, Modal, PasswordInput, Stack, Text } from "@mantine/core";
import { decryptKeyFile, sealedSigner, type KeyFile, type Signer, type Transfer } from "@fastpay/sdk";
import { useState, type FormEvent, type JSX } from "react";

import { ErrorAlert } from "../ui/ErrorAlert";
import { TransferText } from "../ui/TransferText";
import { shortAccount } from "../ui/words";
import { NoKeysHere, useCanKeepKeys } from "./NoKeysHere";

/** The subject of a signature: a transfer, or the request to unlock the account at a number. */
export type Subject = Transfer | { readonly type: "unlock"; readonly sequence: bigint };

interface Props {
  readonly file: KeyFile;
  readonly subject: Subject;
  readonly onUnlocked: (signer: Signer) => void;
  readonly onClose: () => void;
}

/** Asks for the passphrase of a key, to sign with it. */
export default function UnlockDialog({ file, subject, onUnlocked, onClose }: Props): JSX.Element {
  const [passphrase, setPassphrase] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const canKeep = useCanKeepKeys() !== false;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    decryptKeyFile(file.text, passphrase)
      .then(sealedSigner)
      .then(onUnlocked, (thrown: unknown) => {
        setError(thrown);
        setBusy(false);
      });
  };
  return (
    <Modal opened onClose={onClose} title="Unlock your key" centered>
      <form onSubmit={submit}>
        <Stack>
          <NoKeysHere />
          <Text size="sm">The key of {shortAccount(file.account)} is needed to sign this:</Text>
          <Text size="sm" fw={600}>
            {subject.type === "unlock" ? `Request that Ethereum unlock this account at order #${subject.sequence}.` : <TransferText transfer={subject} />}
          </Text>
          <Text size="sm">It stays unlocked until you reload, lock it, or 15 minutes pass.</Text>
          <PasswordInput
            label="Passphrase"
            value={passphrase}
            onChange={(event) => setPassphrase(event.currentTarget.value)}
            autoComplete="current-password"
            data-autofocus
          />
          <ErrorAlert error={error} />
          <Button type="submit" loading={isBusy} disabled={passphrase === "" || !canKeep}>
            Unlock
          </Button>
        </Stack>
      </form>
    </Modal>
  );
}
