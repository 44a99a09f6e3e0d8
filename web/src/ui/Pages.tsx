import { Pagination } from "@mantine/core";
import type { JSX } from "react";

/** The pages of a long table, each with a name for screen readers; nothing where one page shows it all. */
export function Pages(props: { total: number; value: number; onChange: (page: number) => void }): JSX.Element | null {
  if (props.total <= 1) return null;
  return (
    <Pagination
      {...props}
      size="sm"
      getControlProps={(control) => ({ "aria-label": `${control} page` })}
      getItemProps={(number) => ({ "aria-label": `Page ${number}` })}
    />
  );
}
