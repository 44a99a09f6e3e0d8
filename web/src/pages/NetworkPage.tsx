import { Badge, Card, Group, Stack, Text, Title } from "@mantine/core";
import { ZERO_ACCOUNT, type AccountState, type AuthorityAnswer, type AuthorityRef, type Committee } from "@fastpay/sdk";
import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";

import { useAuthorities, useContractStatus } from "../data/queries";
import { useOwners } from "../account/OwnerProvider";
import { useMemberLabel } from "../network/authorities";
import { eventsLabel } from "../network/config";
import { useNetwork } from "../network/NetworkProvider";
import { Copyable } from "../ui/AccountText";
import { ErrorAlert } from "../ui/ErrorAlert";
import { Facts } from "../ui/Facts";
import { PausedNotice } from "../ui/Notices";
import { Page } from "../ui/Page";
import { useStatuses } from "./explore/statuses";
import { duration, timeText } from "../ui/words";

export default function NetworkPage(): JSX.Element {
  const { config, client } = useNetwork();
  const { owner } = useOwners();
  const status = useContractStatus();
  const committee = useQuery({ queryKey: ["committee"], queryFn: () => client.committee(), refetchInterval: 60_000 });
  // Any account shows which authorities answer.
  const authorities = useAuthorities(owner?.account ?? ZERO_ACCOUNT);
  const contract = status.data;
  const { ledger } = config;
  return (
    <Page
      title="Network"
      lead={`What this page trusts: ${ledger === undefined ? "the chain and the contract below, as read from its Ethereum node. Compare them" : "the ledger with the domain below, whose members prove what they answer. Compare the domain"} with another source.`}
      width={720}
    >
      <PausedNotice />
      <ErrorAlert error={status.error} />
      <Card withBorder component="section" aria-label="Deployment">
        <Facts
          facts={[
            ["Chain", ledger === undefined && `${config.chainName} (chain ${config.chainId})`],
            ["Contract", ledger === undefined && <Copyable key="contract" text={config.contract} name="the contract's address" />],
            ["Domain", ledger && <Copyable key="domain" text={config.contract} name="the domain's address" />],
            ["Committee", ledger && `number ${ledger.committee} of the ledger`],
            ["Members of the ledger", ledger?.members.map(({ http }) => http).join(", ")],
            [config.rpc.length === 1 ? "Ethereum node" : "Ethereum nodes", ledger === undefined && config.rpc.join(", ")],
            [ledger === undefined ? "Latest block" : "Newest state", contract && timeText(Number(contract.timestamp) * 1_000)],
            [eventsLabel(config), contract?.lastTransactionIndex.toString()],
            [
              "Outflow limit",
              ledger === undefined &&
              contract &&
                `${contract.outflowShareBasisPoints / 100} % of an asset's balance at once; refills within ${duration(contract.outflowWindow * 1_000)}; more waits ${duration(contract.outflowDelay * 1_000)}`,
            ],
          ]}
        />
      </Card>
      <ErrorAlert error={committee.error} title="The committee cannot be read" />
      {committee.data && <Members committee={committee.data} states={authorities.data ?? []} />}
    </Page>
  );
}

interface MembersProps {
  readonly committee: Committee;
  readonly states: readonly AuthorityAnswer<AccountState>[];
}

function Members({ committee, states }: MembersProps): JSX.Element {
  const nameOf = useMemberLabel();
  const { config } = useNetwork();
  const { members, quorum, faultsTolerated, epoch } = committee;
  return (
    <Card withBorder component="section" aria-label="Committee">
      <Title order={2} size="h4">
        Committee of epoch {epoch.toString()}
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        From {config.holder}. {quorum} of {members.length} votes are a quorum; {faultsTolerated} may be faulty.
      </Text>
      <Stack component="ul" gap="xs" p={0} m={0} style={{ listStyle: "none" }}>
        {members.map(({ votingKey }) => {
          const state = states.find(({ authority }) => authority.name === votingKey);
          return (
            <Group component="li" key={votingKey} justify="space-between">
              <div>
                <Text size="sm" fw={600}>
                  {nameOf(votingKey)}
                </Text>
                <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
                  {state?.authority.url ?? "this page does not know its address"}, voting key {votingKey}
                </Text>
              </div>
              {state?.answer !== undefined && <Answers authority={state.authority} />}
              {state !== undefined && state.answer === undefined && (
                <Badge color="orange" title={state.error?.message ?? ""}>
                  does not answer
                </Badge>
              )}
            </Group>
          );
        })}
      </Stack>
    </Card>
  );
}

/** The badge of an authority that answers. One restored from an older copy does not vote for every order. */
function Answers({ authority: { url } }: { authority: AuthorityRef }): JSX.Element {
  const statuses = useStatuses();
  const { config } = useNetwork();
  const status = statuses[config.authorities.findIndex(({ http }) => http === url)]?.data;
  return status?.restored === true ? <Badge color="orange">answers, restored</Badge> : <Badge color="teal">answers</Badge>;
}
