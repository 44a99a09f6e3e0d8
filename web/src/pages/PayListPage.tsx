import { Anchor, Button, Card, FileButton, Group, Loader, Stack, Text, Textarea } from "@mantine/core";
import { ETHER, type Address, type ListStatus, type PayList } from "@fastpay/sdk";
import { useState, type FormEvent, type JSX } from "react";
import { Link } from "react-router";

import type { Owner } from "../account/OwnerProvider";
import { ActivityCard } from "../activity/ActivityCard";
import { isOrdering, useActivities, useActivityActions } from "../activity/ActivityProvider";
import { useHoldings } from "../data/holdings";
import { useNetwork } from "../network/NetworkProvider";
import { AssetSelect } from "../ui/AssetSelect";
import { WithOwner } from "../ui/Notices";
import { Page } from "../ui/Page";
import { count } from "../ui/words";
import { ListErrors } from "./list/ListErrors";
import { Review } from "./list/Review";
import { UnfinishedLists } from "./list/UnfinishedLists";
import { PendingNotice } from "./pay/PendingNotice";
import { IconUpload } from "../ui/icons";

const EXAMPLE = "recipient,amount,memo\n0x70997970C51812dc3A010C7d01b50e0d17dc79C8,1.5,wages May";
/** The maximum size of a list's file. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;

export default function PayListPage(): JSX.Element {
  return (
    <Page title="Pay a list" lead="Pay up to 256 recipients with one signature. The whole list is checked before you sign." width={720}>
      <WithOwner>{(owner) => <PayMany key={owner.account} owner={owner} />}</WithOwner>
    </Page>
  );
}

/** A validated list. */
interface Checked {
  readonly list: PayList;
  readonly status: ListStatus;
}

function PayMany({ owner }: { owner: Owner }): JSX.Element {
  const { account, signer } = owner;
  const { client } = useNetwork();
  const { start } = useActivityActions();
  const activities = useActivities(account).filter(({ kind }) => kind === "list" || kind === "resume" || kind === "unlock");
  const isBusy = isOrdering(activities, account);
  const [checked, setChecked] = useState<Checked>();
  const pay = ({ list: { name, lines } }: Checked): void => {
    start({
      kind: "list",
      account,
      title: `Pay a list of ${count(lines.length, "payment")}`,
      work: ({ report, signal }) => client.payMany(signer, lines, { name, onProgress: report, signal }),
    });
    setChecked(undefined);
  };
  return (
    <>
      {activities.slice(0, 3).map((activity) => (
        <ActivityCard key={activity.id} activity={activity} />
      ))}
      <PendingNotice owner={owner} />
      <UnfinishedLists owner={owner} />
      {checked === undefined ? (
        <ListForm owner={owner} onChecked={setChecked} />
      ) : (
        <Review owner={owner} status={checked.status} isBusy={isBusy} onPay={() => pay(checked)} onBack={() => setChecked(undefined)} />
      )}
      <Text size="sm">
        <Anchor component={Link} to="/pay" underline="always">
          Pay one person
        </Anchor>
      </Text>
    </>
  );
}

/** Keeps the typed lists while the page is open, so that a mistake in a line can be corrected. */
const typedLists = new Map<string, { text: string; asset: Address }>();

function ListForm({ owner, onChecked }: { owner: Owner; onChecked: (checked: Checked) => void }): JSX.Element {
  const { account, ethereum } = owner;
  const { client } = useNetwork();
  const { list: holdings } = useHoldings(account, ethereum?.address);
  const [typed, setTyped] = useState(() => typedLists.get(account) ?? { text: "", asset: ETHER });
  const [state, setState] = useState<{ isReading: boolean; error?: unknown }>({ isReading: false });
  const change = (part: Partial<typeof typed>): void => {
    const next = { ...typed, ...part };
    typedLists.set(account, next);
    setTyped(next);
    setState({ isReading: false });
  };
  const upload = async (file: File | null): Promise<void> => {
    if (file === null) return;
    if (file.size > FILE_BYTES_MAX) setState({ isReading: false, error: new Error("this file is larger than any list that can be paid") });
    else change({ text: await file.text() });
  };
  const check = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setState({ isReading: true });
    try {
      const list = await client.readList(typed.text, { asset: typed.asset });
      onChecked({ list, status: await client.listStatus(account, list.lines, { name: list.name }) });
    } catch (error) {
      setState({ isReading: false, error });
    }
  };
  return (
    <Card withBorder component="form" onSubmit={(event) => void check(event)} aria-label="List of payments">
      <Stack>
        <Textarea
          label="Payments"
          description="One line per payment: recipient, amount, memo. An optional first line names the columns (recipient, amount, asset, memo)."
          placeholder={EXAMPLE}
          value={typed.text}
          onChange={({ currentTarget: { value } }) => change({ text: value })}
          rows={8}
          spellCheck={false}
          autoComplete="off"
          styles={{ input: { fontFamily: "monospace" } }}
        />
        <Group>
          <FileButton accept=".csv,text/csv,text/plain" onChange={(file) => void upload(file)} inputProps={{ "aria-label": "File with a list of payments" }}>
            {(props) => (
              <Button {...props} variant="default" leftSection={<IconUpload size={18} aria-hidden />}>
                Choose a file
              </Button>
            )}
          </FileButton>
          <Text size="sm" c="dimmed">
            Lines that begin with # are comments. A list is paid only once; change it to pay it again.
          </Text>
        </Group>
        <AssetSelect assets={holdings.map(({ asset }) => asset)} value={typed.asset} onChange={(asset) => change({ asset })} />
        <ListErrors error={state.error} />
        <Button type="submit" disabled={typed.text.trim() === "" || state.isReading}>
          Check the list
        </Button>
        {state.isReading && (
          <Group role="status">
            <Loader size="sm" aria-hidden />
            <Text size="sm">Checking every line …</Text>
          </Group>
        )}
      </Stack>
    </Card>
  );
}

