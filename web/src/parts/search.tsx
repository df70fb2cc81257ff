// Filters a list by a text; short lists need none, unless they are filtered already.

import type { Signal } from '@preact/signals';

interface SearchProps {
  readonly label: string;
  readonly placeholder?: string;
  /** Number of items in the list. Default: many. */
  readonly count?: number;
  /** Gets the text in lower case. */
  readonly filter: Signal<string>;
}

const FEWEST = 8;

export function Search({ label, placeholder = 'Filter', count = FEWEST, filter }: SearchProps) {
  if (count < FEWEST && filter.value === '') return null;
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={placeholder}
      onInput={(event) => {
        filter.value = event.currentTarget.value.trim().toLowerCase();
      }}
    />
  );
}
