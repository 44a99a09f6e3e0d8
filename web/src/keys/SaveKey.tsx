import { Button } from "@mantine/core";
import { formatAccount, type KeyFile } from "@fastpay/sdk";
import type { JSX } from "react";

import { IconDownload } from "../ui/icons";
import { saveFile } from "../ui/save";

/** Saves a key file as a download. */
export function saveKey({ account, text }: KeyFile): void {
  saveFile(`fastpay-${formatAccount(account).slice(0, 12)}.json`, text, "application/json");
}

/** A button that saves a key file. */
export function SaveKey({ file }: { file: KeyFile }): JSX.Element {
  return (
    <Button variant="default" leftSection={<IconDownload size={18} aria-hidden />} onClick={() => saveKey(file)}>
      Save the key file
    </Button>
  );
}
