import { Alert, Button, Card, Group, Stack, Text, TextInput } from "@mantine/core";
import { parseAccount, type AccountId } from "@fastpay/sdk";
import { useState, type FormEvent, type JSX } from "react";

import { CONTACT_NAME_MAX, useContacts } from "../data/contacts";
import { IconTrash, IconUsers } from "../ui/icons";
import { AccountLink } from "../ui/AccountText";
import { Page } from "../ui/Page";

/** The names of accounts stored in this browser. */
export default function ContactsPage(): JSX.Element {
  const { names, rename } = useContacts();
  const sorted = [...names].sort(([, a], [, b]) => a.localeCompare(b));
  return (
    <Page title="Contacts" lead="Your names for accounts, stored in this browser only. Type one in place of the account.">
      <NewContact />
      {sorted.length === 0 ? (
        <Alert color="indigo" icon={<IconUsers aria-hidden />} title="No contacts yet">
          Add a name here, or on an account's page.
        </Alert>
      ) : (
        <Card withBorder component="section" aria-label="Names">
          <Stack component="ul" gap="sm" p={0} m={0} style={{ listStyle: "none" }}>
            {sorted.map(([account, name]) => (
              <Group component="li" key={account} justify="space-between" wrap="nowrap">
                <div style={{ minWidth: 0, overflowWrap: "anywhere" }}>
                  <AccountLink account={account} short={false} />
                </div>
                <Button size="xs" variant="default" onClick={() => rename(account, "")} leftSection={<IconTrash size={16} aria-hidden />} aria-label={`Remove ${name}`}>
                  Remove
                </Button>
              </Group>
            ))}
          </Stack>
        </Card>
      )}
    </Page>
  );
}

function NewContact(): JSX.Element {
  const { names, rename } = useContacts();
  const [typed, setTyped] = useState({ account: "", name: "" });
  const [isTaken, setTaken] = useState(false);
  const account = readAccount(typed.account);
  const known = account && names.get(account);
  const save = (event: FormEvent): void => {
    event.preventDefault();
    if (account === undefined) return;
    const isDone = rename(account, typed.name);
    setTaken(!isDone);
    if (isDone) setTyped({ account: "", name: "" });
  };
  return (
    <Card withBorder component="form" onSubmit={save} aria-label="New contact">
      <Stack>
        <TextInput
          label="Account"
          value={typed.account}
          onChange={({ currentTarget: { value } }) => setTyped((before) => ({ ...before, account: value }))}
          error={typed.account !== "" && account === undefined ? "This is not an account, or it is mistyped." : undefined}
          autoComplete="off"
          spellCheck={false}
        />
        <TextInput
          label="Name"
          value={typed.name}
          maxLength={CONTACT_NAME_MAX}
          onChange={({ currentTarget: { value } }) => setTyped((before) => ({ ...before, name: value }))}
          error={isTaken ? "Another account has this name." : undefined}
          autoComplete="off"
        />
        {known !== undefined && <Text size="sm">It is called {known} now.</Text>}
        <Group>
          <Button type="submit" disabled={account === undefined || typed.name.trim() === ""}>
            Save contact
          </Button>
        </Group>
      </Stack>
    </Card>
  );
}

function readAccount(text: string): AccountId | undefined {
  try {
    return parseAccount(text.trim());
  } catch {
    return undefined;
  }
}
