import { Pagination } from "@mantine/core";
import type { JSX } from "react";

/** The page numbers of a long table, each with a name for screen readers. Renders nothing for a single page. */
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
