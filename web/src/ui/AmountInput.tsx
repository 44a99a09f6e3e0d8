import { Button, TextInput } from "@mantine/core";
import { FastPayError, formatAmount, isFastPayError, parseAmount } from "@fastpay/sdk";
import type { JSX, ReactNode } from "react";

import type { ShownAsset } from "../data/queries";
import { money, sentence } from "./words";

/** A parsed amount: units, nothing yet, or the reason why it is invalid. */
export interface TypedAmount {
  readonly units: bigint | undefined;
  readonly fault: string | undefined;
}

/** Parses the typed amount; `available` is the maximum that can be moved, if it is known. */
export function readAmount(text: string, info: ShownAsset | undefined, available?: bigint): TypedAmount {
  if (text === "" || info === undefined) return { units: undefined, fault: undefined };
  try {
    const units = parseAmount(checkComma(text.trim()), info.decimals);
    if (units === 0n) return { units: undefined, fault: "Enter an amount above zero." };
    if (available !== undefined && units > available) {
      return { units: undefined, fault: `Not enough money: ${money(available, info)} available.` };
    }
    return { units, fault: undefined };
  } catch (error) {
    return { units: undefined, fault: isFastPayError(error) ? sentence(error.action) : "This is not an amount." };
  }
}

/** Refuses commas: this page uses them to group thousands, and many keyboards have one as the decimal point. */
function checkComma(text: string): string {
  if (!text.includes(",")) return text;
  const action = "use no comma between thousands, and a point before decimals, such as 1000 or 1.5";
  throw new FastPayError("invalid-amount", `${JSON.stringify(text)} has an ambiguous comma`, action);
}

/** The available balance as a description of the amount field; `error` is the reason if it is unknown. */
export function availableText(units: bigint | undefined, info: ShownAsset | undefined, where: string, error: unknown): string {
  if (units !== undefined && info !== undefined) return `You have ${money(units, info)} ${where}`;
  return error === undefined || error === null ? "Loading your balance …" : "Your balance cannot be read";
}

interface Props {
  readonly label?: string;
  readonly text: string;
  readonly onChange: (text: string) => void;
  readonly info: ShownAsset | undefined;
  readonly fault: string | undefined;
  readonly description?: ReactNode;
  /** The amount that the button fills in. Without it there is no button. */
  readonly most?: bigint | undefined;
  /** The button's label. */
  readonly fill?: string;
  readonly disabled?: boolean;
  readonly required?: boolean;
}

/** An input for an amount. It is a text field, because a number field would round. */
export function AmountInput(props: Props): JSX.Element {
  const { label = "Amount", text, onChange, info, fault, description, most, fill = "Max", disabled = false, required = true } = props;
  const canFill = most !== undefined && most > 0n && info !== undefined && !disabled;
  return (
    <TextInput
      label={label}
      description={description}
      inputMode="decimal"
      autoComplete="off"
      placeholder="0.0"
      value={text}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={fault}
      disabled={disabled}
      required={required}
      withAsterisk={false}
      rightSectionWidth={fill.length * 8 + 32}
      rightSection={
        canFill ? (
          <Button variant="subtle" size="compact-xs" onClick={() => onChange(formatAmount(most, info.decimals))}>
            {fill}
          </Button>
        ) : undefined
      }
    />
  );
}
