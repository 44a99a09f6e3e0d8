import { Alert, Button, Checkbox, PasswordInput, Stack, Text } from "@mantine/core";
import { formatAccount, type KeyFile } from "@fastpay/sdk";
import { useState, type FormEvent, type JSX } from "react";

import { Copyable } from "../ui/AccountText";
import { ErrorAlert } from "../ui/ErrorAlert";
import { IconAlertTriangle } from "../ui/icons";
import { useKeys } from "./KeysProvider";
import { SaveKey } from "./SaveKey";

/** An attacker with the file can guess passphrases, about one a second. */
const PASSPHRASE_LENGTH_MIN = 12;

/** Creates a key, and requires its owner to save a copy. */
export function NewKey({ onDone }: { onDone: (file: KeyFile) => void }): JSX.Element {
  const [made, setMade] = useState<KeyFile>();
  return made === undefined ? <Make onMade={setMade} /> : <Keep file={made} onDone={() => onDone(made)} />;
}

function Make({ onMade }: { onMade: (file: KeyFile) => void }): JSX.Element {
  const { make } = useKeys();
  const [typed, setTyped] = useState({ passphrase: "", again: "" });
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const { passphrase, again } = typed;
  const isShort = passphrase !== "" && passphrase.length < PASSPHRASE_LENGTH_MIN;
  const differs = again !== "" && again !== passphrase;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    make(passphrase)
      .then(onMade, setError)
      .finally(() => setBusy(false));
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <Alert color="orange" icon={<IconAlertTriangle aria-hidden />} title="This key will be your account">
          <Text size="sm">
            The key controls the money, and nobody can restore it. Only this browser stores it, encrypted. It is as safe as
            this page and this device: for large amounts use an Ethereum wallet.
          </Text>
        </Alert>
        <PasswordInput
          label="Passphrase"
          description={`At least ${PASSPHRASE_LENGTH_MIN} characters; for example several unrelated words`}
          value={passphrase}
          onChange={(event) => setTyped({ ...typed, passphrase: event.currentTarget.value })}
          error={isShort ? "This is too short." : undefined}
          autoComplete="new-password"
          data-autofocus
        />
        <PasswordInput
          label="Passphrase once more"
          value={again}
          onChange={(event) => setTyped({ ...typed, again: event.currentTarget.value })}
          error={differs ? "The passphrases differ." : undefined}
          autoComplete="new-password"
        />
        <ErrorAlert error={error} />
        <Button type="submit" loading={isBusy} disabled={isShort || passphrase === "" || again !== passphrase}>
          Create the key
        </Button>
      </Stack>
    </form>
  );
}

function Keep({ file, onDone }: { file: KeyFile; onDone: () => void }): JSX.Element {
  const [isSafe, setSafe] = useState(false);
  return (
    <Stack>
      <Text size="sm">Your account:</Text>
      <Copyable text={formatAccount(file.account)} name="your account" />
      <Text size="sm">
        Save the key file on another device. It is encrypted under your passphrase, and opens here on
        another device, or with <code>fastpay keys import</code>. A browser may clear what it keeps: then this file is all
        there is.
      </Text>
      <SaveKey file={file} />
      <Checkbox
        checked={isSafe}
        onChange={(event) => setSafe(event.currentTarget.checked)}
        label="I have saved the file, and I know the passphrase"
      />
      <Button disabled={!isSafe} onClick={onDone}>
        Use this account
      </Button>
    </Stack>
  );
}
