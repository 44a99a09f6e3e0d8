import { Button, Group, TextInput } from "@mantine/core";
import { formatAccount, isFastPayError, parseAccount } from "@fastpay/sdk";
import { useState, type FormEvent, type JSX } from "react";
import { useNavigate } from "react-router";

import { useNetwork } from "../../network/NetworkProvider";
import { sentence } from "../../ui/words";
import { IconSearch } from "../../ui/icons";

/** The page for a search text: an account, a digest, an account's order (`account#7`), or a deposit's number. */
export function placeOf(text: string): string {
  const query = text.trim();
  if (/^0x[0-9a-fA-F]{64}$/.test(query)) return `/explore/transfer/${query.toLowerCase()}`;
  if (/^[0-9]{1,15}$/.test(query)) return `/explore/deposit/${query}`;
  const [account = "", sequence] = query.split(/[#/]/);
  const name = formatAccount(parseAccount(account.trim()));
  if (sequence === undefined) return `/explore/account/${name}`;
  if (!/^\s*[0-9]{1,20}\s*$/.test(sequence)) throw new RangeError("give the order's number after the #");
  return `/explore/transfer/${name}/${sequence.trim()}`;
}

/** One field for every kind of search. */
export function SearchBox(): JSX.Element {
  const navigate = useNavigate();
  const { ledger } = useNetwork().config;
  const [text, setText] = useState("");
  const [fault, setFault] = useState<string>();
  const search = (event: FormEvent): void => {
    event.preventDefault();
    try {
      setFault(undefined);
      void navigate(placeOf(text));
    } catch (error) {
      setFault(isFastPayError(error) ? sentence(error.action) : "Give the order's number after the #.");
    }
  };
  return (
    <form role="search" onSubmit={search}>
      <Group align="flex-end" gap="xs">
        <TextInput
          label="Look up"
          description={`Account, transfer digest, order number of an account (0x…#7), ${ledger === undefined ? "deposit number, or Ethereum transaction hash" : "or deposit number"}`}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          error={fault}
          autoComplete="off"
          spellCheck={false}
          style={{ flex: "1 1 240px" }}
        />
        <Button type="submit" size="md" leftSection={<IconSearch size={18} aria-hidden />} disabled={text.trim() === ""}>
          Look up
        </Button>
      </Group>
    </form>
  );
}
