import { Accordion, Text } from "@mantine/core";
import type { JSX, ReactNode } from "react";
import { Link } from "react-router";

import { useNetwork } from "../network/NetworkProvider";
import { Page } from "../ui/Page";

/** A question that people have, with a short answer. */
interface Entry {
  readonly question: string;
  readonly answer: ReactNode;
  /** What differs on a ledger. */
  readonly onLedger?: { readonly question?: string; readonly answer: ReactNode };
}

const ENTRIES: readonly Entry[] = [
  {
    question: "How do I start?",
    answer: <>Connect an Ethereum wallet or create a browser key, then <Link to="/deposit">deposit</Link>, or show <Link to="/receive">your account</Link> to somebody who pays you.</>,
    onLedger: {
      answer: <>Create a browser key or connect an Ethereum wallet, then show <Link to="/receive">your account</Link> to somebody who pays you, or to a bank that <Link to="/deposit">deposits</Link> into it.</>,
    },
  },
  {
    question: "When is a payment final?",
    answer: "A payment is certified when a quorum of authorities has voted for it, and settled when a quorum has confirmed that. Settled is final: nobody can undo it.",
  },
  {
    question: "How long does a deposit take?",
    answer: "Until Ethereum has finalized its block and a quorum of authorities has credited it: about a quarter of an hour on the main network.",
    onLedger: { answer: "Until the ledger has carried it out and a quorum of authorities has credited it: usually seconds." },
  },
  {
    question: "How do I get my money back to Ethereum?",
    answer: <><Link to="/redeem">Redeem</Link> it. A relayer submits the redemption for a fee, or your own transaction does. Amounts above the contract&apos;s outflow limit wait in a queue first.</>,
    onLedger: {
      question: "How do I get my money back to the ledger?",
      answer: <><Link to="/redeem">Redeem</Link> it to the reserve of an Ethereum address. A relayer hands the redemption to the ledger for a fee, or the command line does.</>,
    },
  },
  {
    question: "I closed the page during a payment. Is my money safe?",
    answer: "Yes. The order is stored before it is sent. Open the page again in the same browser: it finishes the order with the same signature, and it is paid once.",
  },
  {
    question: "Ethereum does not answer. Can I still pay?",
    answer: "Yes, in a browser that has opened this page before. Payments need the authorities only. Deposits and payouts wait until an Ethereum node answers.",
    onLedger: {
      question: "The ledger does not answer. Can I still pay?",
      answer: "Yes, in a browser that has opened this page before. Payments need the authorities only. Deposits and payouts wait.",
    },
  },
  {
    question: "Too few authorities answer. What now?",
    answer: "Nothing is lost. A signed order stays valid: choose Continue when more authorities answer.",
  },
  {
    question: "I lost my browser key or its passphrase.",
    answer: "Import the key file that you saved. Without the file and its passphrase, the key and its money are lost.",
  },
  {
    question: "May I use one account on two devices?",
    answer: "Use one at a time. Two devices that pay at the same moment can lock the account. The page then offers to unlock it: Ethereum decides which order is valid, or voids both. That costs gas and takes between half an hour and a few days.",
    onLedger: {
      answer: "Use one at a time. Two devices that pay at the same moment can lock the account, and no page can have a ledger unlock it: ask the committee's operators.",
    },
  },
  {
    question: "Whom do I trust?",
    answer: <>The host of this page, its Ethereum node, and that no more than a third of the authorities are faulty. <Link to="/network">What this page trusts</Link> lists them for comparison.</>,
    onLedger: {
      answer: <>The host of this page, the genesis of the ledger, and that no more than a third of the ledger&apos;s members and of the authorities are faulty. <Link to="/network">What this page trusts</Link> lists them for comparison.</>,
    },
  },
];

export default function HelpPage(): JSX.Element {
  const { ledger } = useNetwork().config;
  const entries = ENTRIES.map(({ onLedger, ...entry }) => (ledger === undefined ? entry : { ...entry, ...onLedger }));
  return (
    <Page title="Help" lead="Short answers. Errors on the other pages say what to do.">
      <Accordion multiple variant="contained" order={2}>
        {entries.map(({ question, answer }, index) => (
          <Accordion.Item key={question} value={index.toString()}>
            <Accordion.Control>{question}</Accordion.Control>
            <Accordion.Panel>
              <Text size="sm">{answer}</Text>
            </Accordion.Panel>
          </Accordion.Item>
        ))}
      </Accordion>
    </Page>
  );
}
