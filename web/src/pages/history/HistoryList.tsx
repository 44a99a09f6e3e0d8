import { Alert, Button, Card, Center, Group, Loader, NativeSelect, Stack, Text, TextInput, Title } from "@mantine/core";
import { formatAccount, formatHistory, type AccountId, type Address } from "@fastpay/sdk";
import { useState, type JSX } from "react";

import { useHistory } from "../../data/history";
import { useNamings } from "../../data/queries";
import { useSeen } from "../../data/seen";
import { useNetwork } from "../../network/NetworkProvider";
import { ErrorAlert } from "../../ui/ErrorAlert";
import { IconDownload } from "../../ui/icons";
import { saveFile } from "../../ui/save";
import { shorten } from "../../ui/words";
import { TimelineLine } from "./Lines";
import { assetOf, passes, timeline, undatedKeys, type Filter, type TimelineItem } from "./timeline";

interface Props {
  readonly account: AccountId;
  /** The number of entries of each kind that are read at once and shown without filters. */
  readonly limit: number;
  readonly heading?: string;
  /** True to offer older entries, filters, and a CSV file. */
  readonly hasMore?: boolean;
}

const EVERYTHING: Filter = { kind: "all", asset: "all", text: "" };
const KINDS = [
  { value: "all", label: "Everything" },
  { value: "received", label: "Received" },
  { value: "sent", label: "Sent" },
  { value: "redeemed", label: "Redeemed" },
  { value: "deposit", label: "Deposits" },
];

/**
 * An account's transfers, proven by certificates, and deposits, confirmed by f + 1 authorities, in one list, newest
 * first.
 */
export function HistoryList({ account, limit, heading, hasMore = false }: Props): JSX.Element {
  const history = useHistory(account, limit);
  const { config } = useNetwork();
  const { isLoading, error, incomplete, hasOlder, isLoadingOlder, loadOlder } = history;
  const seen = useSeen(account, undatedKeys(history));
  const [filter, setFilter] = useState(EVERYTHING);
  if (isLoading) {
    return (
      <Center p="md">
        <Loader aria-hidden />
        <Text ml="sm" role="status">
          Loading certificates …
        </Text>
      </Center>
    );
  }
  const all = timeline(history, seen);
  const items = hasMore ? all.filter((item) => passes(item, filter)) : all.slice(0, limit);
  return (
    <Stack gap="sm">
      {heading !== undefined && (
        <Title order={2} size="h4">
          {heading}
        </Title>
      )}
      <ErrorAlert error={error} title="The history cannot be read" />
      {incomplete.length > 0 && (
        <Alert color="gray" title="Older entries are missing">
          {incomplete.some((list) => list !== "deposits")
            ? "Authorities have pruned them, and none returned them from its archive. Try again later."
            : `Authorities have pruned older deposits. They are in the log of ${config.ledger === undefined ? "the contract on Ethereum" : "the ledger"}.`}
        </Alert>
      )}
      {all.length === 0 && error === undefined && incomplete.length === 0 && <Text c="dimmed">Nothing yet.</Text>}
      {hasMore && all.length > 0 && <Filters items={all} filter={filter} onChange={setFilter} />}
      {items.length > 0 && (
        <Card withBorder component="section" aria-label="History entries">
          <Stack component="ul" gap="sm" p={0} m={0} style={{ listStyle: "none" }}>
            {items.map((item) => (
              <TimelineLine key={item.key} item={item} />
            ))}
          </Stack>
        </Card>
      )}
      {hasMore && all.length > 0 && items.length === 0 && <Text role="status">No loaded entry matches.</Text>}
      {hasMore && all.length > 0 && (
        <Group>
          {hasOlder && (
            <Button variant="default" onClick={loadOlder} loading={isLoadingOlder}>
              Show older entries
            </Button>
          )}
          <Button variant="default" onClick={() => void save(account, items)} leftSection={<IconDownload size={18} aria-hidden />}>
            Save as CSV
          </Button>
        </Group>
      )}
    </Stack>
  );
}

function Filters(props: { items: readonly TimelineItem[]; filter: Filter; onChange: (filter: Filter) => void }): JSX.Element {
  const { items, filter, onChange } = props;
  const assets = [...new Set(items.map(assetOf))];
  const namings = useNamings(assets);
  const labels = assets.map((asset, index) => ({ value: asset, label: namings[index]?.info?.label ?? shorten(asset) }));
  return (
    <Group grow align="flex-end" preventGrowOverflow={false}>
      <NativeSelect
        label="Kind"
        data={KINDS}
        value={filter.kind}
        onChange={(event) => onChange({ ...filter, kind: event.currentTarget.value as Filter["kind"] })}
      />
      {assets.length > 1 && (
        <NativeSelect
          label="Asset"
          data={[{ value: "all", label: "All assets" }, ...labels]}
          value={filter.asset}
          onChange={(event) => onChange({ ...filter, asset: event.currentTarget.value as Address | "all" })}
        />
      )}
      <TextInput
        label="Account, memo or digest"
        type="search"
        value={filter.text}
        onChange={(event) => onChange({ ...filter, text: event.currentTarget.value })}
      />
    </Group>
  );
}

async function save(account: AccountId, items: readonly TimelineItem[]): Promise<void> {
  const history = {
    received: items.flatMap((item) => (item.kind === "received" ? [item.entry] : [])),
    sent: items.flatMap((item) => (item.kind === "sent" || item.kind === "redeemed" ? [item.entry] : [])),
    deposits: items.flatMap((item) => (item.kind === "deposit" ? [item.entry] : [])),
  };
  const times = new Map(items.flatMap(({ entry, ms }) => (ms === undefined ? [] : [[entry, ms] as const])));
  saveFile(`fastpay-${formatAccount(account).slice(0, 12)}.csv`, await formatHistory(history, times), "text/csv");
}
