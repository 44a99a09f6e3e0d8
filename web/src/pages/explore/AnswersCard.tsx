import { Accordion, Alert, Badge, Card, Group, List, Text, Title } from "@mantine/core";
import { ProblemError, type CertificateEvidence, type CertificateReport, type VoteFault } from "@fastpay/sdk";
import type { JSX } from "react";
import { useAuthorityLabel, useMemberLabel } from "../../network/authorities";

import { IconCheck, IconX } from "../../ui/icons";

type Answer = CertificateEvidence["answers"][number];

const FAULTS: Record<VoteFault, string> = {
  "not-a-member": "is not by a member of the committee",
  "wrong-kind": "is a vote on another kind of transfer",
  path: "has a Merkle path that does not match the root",
  signature: "has an invalid signature",
};

/** Each authority's answer about a transfer, with this page's check of each vote. */
export function AnswersCard({ answers }: { answers: CertificateEvidence["answers"] }): JSX.Element {
  const forged = answers.filter(({ answer }) => answer?.report?.isValid === false);
  return (
    <Card withBorder component="section" aria-label="What each authority shows">
      <Title order={2} size="h4">
        What each authority shows
      </Title>
      <Text size="sm" c="dimmed">
        Each authority's copy of the certificate, checked against the committee of its epoch.
      </Text>
      {forged.length > 0 && (
        <Alert color="red" role="alert" title="Invalid certificate" mt="sm">
          {forged.length === 1 ? "One authority shows" : `${forged.length} authorities show`} a certificate that is not valid.
          This page ignores it.
        </Alert>
      )}
      <Accordion multiple variant="contained" mt="sm" chevronPosition="left" order={3}>
        {answers.map((answer) => (
          <AnswerItem key={answer.authority.url} {...answer} />
        ))}
      </Accordion>
    </Card>
  );
}

function AnswerItem({ authority, answer, error }: Answer): JSX.Element {
  const labelOf = useAuthorityLabel();
  return (
    <Accordion.Item value={authority.url}>
      <Accordion.Control>
        <Group justify="space-between" wrap="nowrap">
          <Text size="sm">{labelOf(authority)}</Text>
          <Verdict answer={answer} error={error} />
        </Group>
      </Accordion.Control>
      <Accordion.Panel>
        <Text size="xs" c="dimmed">
          {authority.url}
          {authority.name !== undefined && `, voting key ${authority.name}`}
        </Text>
        {answer === undefined && <Text size="sm">{error?.message ?? "It does not answer."}</Text>}
        {answer !== undefined && answer.report === undefined && (
          <Text size="sm">
            It belongs to epoch {answer.certificate.epoch.toString()}, which is not known to be final yet. Try again later.
          </Text>
        )}
        {answer?.report !== undefined && <Report report={answer.report} />}
      </Accordion.Panel>
    </Accordion.Item>
  );
}

function Verdict({ answer, error }: Pick<Answer, "answer" | "error">): JSX.Element {
  if (error instanceof ProblemError && error.problem === "pruned") return <Badge color="gray">pruned it</Badge>;
  if (answer === undefined) return <Badge color="gray">shows none</Badge>;
  const { report } = answer;
  if (report === undefined) return <Badge color="gray">epoch not known yet</Badge>;
  if (!report.isValid) return <Badge color="red">forged</Badge>;
  return <Badge color="teal">{report.votes.length} valid votes</Badge>;
}

function Report({ report }: { report: CertificateReport }): JSX.Element {
  const labelOf = useMemberLabel();
  return (
    <List listStyleType="none" size="sm" spacing={4}>
      <Check isGood={report.orderFault === undefined}>
        {report.orderFault === undefined ? "The sender signed this order" : `The order: ${report.orderFault}`}
      </Check>
      {report.votes.map(({ authority, fault }, index) => (
        <Check key={`${authority}-${index}`} isGood={fault === undefined}>
          <span title={authority}>Vote of {labelOf(authority)}</span> {fault === undefined ? "is valid" : FAULTS[fault]}
        </Check>
      ))}
      <Check isGood={report.fault === undefined}>
        {report.fault === undefined ? "They are exactly a quorum" : `The quorum: ${report.fault}`}
      </Check>
    </List>
  );
}

function Check({ isGood, children }: { isGood: boolean; children: React.ReactNode }): JSX.Element {
  const icon = isGood ? (
    <IconCheck size={16} color="var(--mantine-color-teal-7)" role="img" aria-label="Good:" />
  ) : (
    <IconX size={16} color="var(--mantine-color-red-7)" role="img" aria-label="Bad:" />
  );
  return (
    <List.Item icon={icon} data-good={isGood}>
      {children}
    </List.Item>
  );
}
