import { Button } from "@mantine/core";
import { formatAccount, type KeyFile } from "@fastpay/sdk";
import type { JSX } from "react";

import { IconDownload } from "../ui/icons";

/** Saves a key file where the browser saves files. */
export function saveKey({ account, text }: KeyFile): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = `fastpay-${formatAccount(account).slice(0, 12)}.json`;
  link.click();
  URL.revokeObjectURL(url);
}

/** The button for it. */
export function SaveKey({ file }: { file: KeyFile }): JSX.Element {
  return (
    <Button variant="default" leftSection={<IconDownload size={18} aria-hidden />} onClick={() => saveKey(file)}>
      Save the key file
    </Button>
  );
}
