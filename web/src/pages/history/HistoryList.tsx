import { Button, Card, Center, Group, Loader, Stack, Text, Title } from "@mantine/core";
import { formatAccount, formatHistory, type AccountId } from "@fastpay/sdk";
import type { JSX, ReactNode } from "react";

import { useHistory } from "../../data/history";
import { ErrorAlert } from "../../ui/ErrorAlert";
import { IconDownload } from "../../ui/icons";
import { saveFile } from "../../ui/save";
import { DepositLine, ReceivedLine, SentLine } from "./Lines";

interface Props {
  readonly account: AccountId;
  /** So many of each kind at once. */
  readonly limit: number;
  readonly heading?: string;
  /** Offers older ones. */
  readonly hasMore?: boolean;
}

/** What an account sent and received, each proven by its certificate, and deposited, as enough authorities tell alike. */
export function HistoryList({ account, limit, heading, hasMore = false }: Props): JSX.Element {
  const { sent, received, deposits, isLoading, error, hasOlder, isLoadingOlder, loadOlder } = useHistory(account, limit);
  if (isLoading) {
    return (
      <Center p="md">
        <Loader aria-hidden />
        <Text ml="sm" role="status">
          Gathering certificates …
        </Text>
      </Center>
    );
  }
  const save = async (): Promise<void> => {
    const text = await formatHistory({ sent, received, deposits });
    saveFile(`fastpay-${formatAccount(account).slice(0, 12)}.csv`, text, "text/csv");
  };
  // No level of headings is left out, for those who go by them.
  const order = heading === undefined ? 2 : 3;
  const isEmpty = sent.length + received.length + deposits.length === 0;
  return (
    <Stack gap="sm">
      {heading !== undefined && (
        <Title order={2} size="h4">
          {heading}
        </Title>
      )}
      <ErrorAlert error={error} title="The history is not known now" />
      {isEmpty && error === undefined && <Text c="dimmed">Nothing yet.</Text>}
      <Section title="Received" order={order} hasEntries={received.length > 0}>
        {received.map((entry) => (
          <ReceivedLine key={`${entry.certificate.digest}/${entry.output ?? ""}`} entry={entry} />
        ))}
      </Section>
      <Section title="Sent" order={order} hasEntries={sent.length > 0}>
        {sent.map((entry) => (
          <SentLine key={entry.certificate.digest} entry={entry} />
        ))}
      </Section>
      <Section title="Deposits" order={order} hasEntries={deposits.length > 0}>
        {deposits.map((entry) => (
          <DepositLine key={entry.index.toString()} entry={entry} />
        ))}
      </Section>
      {hasMore && !isEmpty && (
        <Group>
          {hasOlder && (
            <Button variant="default" onClick={loadOlder} loading={isLoadingOlder}>
              Show older ones
            </Button>
          )}
          <Button variant="default" onClick={() => void save()} leftSection={<IconDownload size={18} aria-hidden />}>
            Save what is shown
          </Button>
        </Group>
      )}
    </Stack>
  );
}

function Section(props: { title: string; order: 2 | 3; hasEntries: boolean; children: ReactNode }): JSX.Element | null {
  if (!props.hasEntries) return null;
  return (
    <Card withBorder component="section" aria-label={props.title}>
      <Title order={props.order} size="h5" mb="xs">
        {props.title}
      </Title>
      <Stack component="ul" gap="sm" p={0} m={0} style={{ listStyle: "none" }}>
        {props.children}
      </Stack>
    </Card>
  );
}
