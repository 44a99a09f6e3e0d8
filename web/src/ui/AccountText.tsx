import { ActionIcon, Anchor, Code, CopyButton, Group } from "@mantine/core";
import { formatAccount, type AccountId } from "@fastpay/sdk";
import type { JSX } from "react";
import { Link } from "react-router";

import { useContacts } from "../data/contacts";
import { shorten } from "./words";
import { IconCheck, IconCopy } from "./icons";

/** A text, whole or shortened, with a button that copies it. */
export function Copyable({ text, name, short = false }: { text: string; name: string; short?: boolean }): JSX.Element {
  return (
    <Group gap={4} wrap="nowrap">
      <Code style={{ overflowWrap: "anywhere", whiteSpace: "normal" }}>{short ? shorten(text) : text}</Code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <ActionIcon
            variant="subtle"
            color="gray"
            onClick={copy}
            aria-label={copied ? `${name} copied` : `Copy ${name}`}
            title={copied ? "Copied" : "Copy"}
          >
            {copied ? <IconCheck size={16} aria-hidden /> : <IconCopy size={16} aria-hidden />}
          </ActionIcon>
        )}
      </CopyButton>
    </Group>
  );
}

/** An account, with a link to its page in the explorer. */
export function AccountLink({ account, short = true }: { account: AccountId; short?: boolean }): JSX.Element {
  const text = formatAccount(account);
  const name = useContacts().names.get(account);
  return (
    <>
      {name !== undefined && `${name} `}
      <Anchor component={Link} to={`/explore/account/${text}`} ff="monospace" size="sm" style={{ overflowWrap: "anywhere" }}>
        {short ? shorten(text) : text}
      </Anchor>
    </>
  );
}
