import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Address } from "@fastpay/sdk";
import { useState, type FormEvent, type JSX } from "react";
import { isAddress } from "viem";

import { ASSETS_ADDED_MAX, useKnownAssets } from "../../data/assets";
import { useNetwork } from "../../network/NetworkProvider";
import { ErrorAlert } from "../../ui/ErrorAlert";
import { IconPlus } from "../../ui/icons";

/** The form to add a token. */
export function AddToken(): JSX.Element {
  const [isOpen, { open, close }] = useDisclosure(false);
  return (
    <>
      <Group>
        <Button variant="subtle" size="xs" leftSection={<IconPlus size={16} aria-hidden />} onClick={open}>
          Add a token
        </Button>
      </Group>
      <Modal opened={isOpen} onClose={close} title="Add a token" centered>
        <Form onDone={close} />
      </Modal>
    </>
  );
}

function Form({ onDone }: { onDone: () => void }): JSX.Element {
  const { client } = useNetwork();
  const { assets, add } = useKnownAssets();
  const [text, setText] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const address = isAddress(text.trim()) ? (text.trim().toLowerCase() as Address) : undefined;
  const fault =
    text === "" ? undefined : address === undefined ? "This is not an address, or it is mistyped." : assets.includes(address) ? "This token is already shown." : undefined;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (address === undefined || fault !== undefined) return;
    setBusy(true);
    setError(undefined);
    client
      .assetInfo(address)
      .then(() => {
        add(address);
        onDone();
      })
      .catch(setError)
      .finally(() => setBusy(false));
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label="The token's address"
          description={`Anyone can create a token with any name. Copy its address from a source that you trust. At most ${ASSETS_ADDED_MAX}.`}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          error={fault}
          autoComplete="off"
          spellCheck={false}
          data-autofocus
        />
        <ErrorAlert error={error} title="This is not a token" />
        <Button type="submit" loading={isBusy} disabled={address === undefined || fault !== undefined}>
          Add
        </Button>
        <Text size="xs" c="dimmed">
          The choice is stored in this browser.
        </Text>
      </Stack>
    </form>
  );
}
