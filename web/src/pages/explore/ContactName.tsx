import { Button, Group, TextInput } from "@mantine/core";
import type { AccountId } from "@fastpay/sdk";
import { useState, type FormEvent, type JSX } from "react";

import { CONTACT_NAME_MAX, useContacts } from "../../data/contacts";

/** The user's name for an account. */
export function ContactName({ account }: { account: AccountId }): JSX.Element {
  const { names, rename } = useContacts();
  const known = names.get(account) ?? "";
  const [text, setText] = useState(known);
  const [isTaken, setTaken] = useState(false);
  const save = (event: FormEvent): void => {
    event.preventDefault();
    setTaken(!rename(account, text));
  };
  return (
    <form onSubmit={save}>
      <Group align="flex-end" gap="xs">
        <TextInput
          label="Contact name for this account"
          description="Stored in this browser only"
          value={text}
          maxLength={CONTACT_NAME_MAX}
          onChange={(event) => setText(event.currentTarget.value)}
          error={isTaken ? "Another account has this name." : undefined}
          autoComplete="off"
          style={{ flex: "1 1 200px" }}
        />
        <Button type="submit" variant="default" size="md" disabled={text.trim() === known}>
          {text.trim() === "" && known !== "" ? "Remove contact" : "Save contact"}
        </Button>
      </Group>
    </form>
  );
}
