import { Button, FileInput, PasswordInput, Stack, Text } from "@mantine/core";
import type { KeyFile } from "@fastpay/sdk";
import { useState, type FormEvent, type JSX } from "react";

import { ErrorAlert } from "../ui/ErrorAlert";
import { IconFileImport } from "../ui/icons";
import { useKeys } from "./KeysProvider";

/** Imports a key from a file. */
export function ImportKey({ onDone }: { onDone: (file: KeyFile) => void }): JSX.Element {
  const { add } = useKeys();
  const [file, setFile] = useState<File | null>(null);
  const [passphrase, setPassphrase] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (file === null) return;
    setBusy(true);
    setError(undefined);
    file
      .text()
      .then((text) => add(text, passphrase))
      .then(onDone, setError)
      .finally(() => setBusy(false));
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <Text size="sm">
          A key file of this page, or of <code>fastpay keys new --ed25519</code>. It stays encrypted; keep your copy. Use an
          account in one place at a time: two devices that pay at the same moment can lock it.
        </Text>
        <FileInput
          label="Key file"
          size="md"
          placeholder="Choose a file"
          accept="application/json,.json"
          leftSection={<IconFileImport size={18} aria-hidden />}
          value={file}
          onChange={setFile}
        />
        <PasswordInput
          label="Passphrase"
          value={passphrase}
          onChange={(event) => setPassphrase(event.currentTarget.value)}
          autoComplete="current-password"
        />
        <ErrorAlert error={error} />
        <Button type="submit" loading={isBusy} disabled={file === null || passphrase === ""}>
          Import the key
        </Button>
      </Stack>
    </form>
  );
}
