// One line of a list of facts: a name and a value.

import type { ComponentChildren } from 'preact';

export function DetailRow({
  name,
  children,
}: {
  readonly name: string;
  readonly children: ComponentChildren;
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
