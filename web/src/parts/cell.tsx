// Cells of lists: a number with its name where no heading shows it, and a bar for a share.

import type { ComponentChildren } from 'preact';
import type { Tone } from './state.tsx';

interface CellProps {
  /** Shown on narrow screens, where the list has no heading. */
  readonly name: string;
  readonly tone?: Tone | undefined;
  readonly children: ComponentChildren;
}

export function Cell({ name, tone, children }: CellProps) {
  return (
    <span class={tone === undefined ? 'cell' : `cell tone-${tone}`}>
      <span class="key">{name}</span>
      {children}
    </span>
  );
}

/** `part` of 1. Hidden from screen readers: it repeats the value beside it. */
export function Bar({ part }: { readonly part: number }) {
  return (
    <span class="bar" aria-hidden="true">
      <span style={{ width: `${Math.round(Math.min(1, part) * 100)}%` }} />
    </span>
  );
}
