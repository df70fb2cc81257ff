// Makes documents of the table of settings: the Markdown table of docs/reference/configuration.md and README, and the options
// that the command line declares.

import { boolean } from './kinds.ts';
import type { Setting } from './setting.ts';
import { SETTINGS } from './settings.ts';

/** A flag as a command line declares it. `takesValue` is false for a switch, which also has a `--no-` form. */
export interface FlagDocument {
  readonly flag: string;
  readonly takesValue: boolean;
  readonly doc: string;
}

/** The flags of all settings, with `--config`. */
export function settingFlags(): readonly FlagDocument[] {
  const flags: FlagDocument[] = [
    {
      flag: 'config',
      takesValue: true,
      doc: 'Configuration file; default gateway.yaml when it exists',
    },
  ];
  for (const row of allSettings()) {
    if (row.flag === undefined) continue;
    const { kind, doc } = row;
    const value = defaultText(row);
    const otherwise = value === '' ? '' : `; default ${value}`;
    flags.push({
      flag: row.flag,
      takesValue: kind !== boolean,
      doc: `${doc.replace(/\.$/, '')}${otherwise}`,
    });
  }
  return flags;
}

/** The table of settings in Markdown. `spec/config.spec.ts` fails while docs/reference/configuration.md holds another one. */
export function renderSettingsTable(): string {
  const rows = allSettings().map((row) => {
    const variables = [`MCP_GATEWAY_${row.variable}`, `GATEWAY_${row.variable}`];
    const value = defaultText(row);
    return [
      code(row.key),
      row.flag === undefined ? '' : code(`--${row.flag}`),
      variables.map(code).join('<br>'),
      row.kind.type,
      value === '' ? '' : code(value),
      `${row.doc}${row.secret ? ' Secret.' : ''}`,
    ];
  });
  return alignTable(['gateway.yaml', 'Flag', 'Environment', 'Value', 'Default', 'What it does'], rows);
}

/** Pads the columns, as the formatter of the repository would. */
function alignTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map((cells) => cells[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

function allSettings(): readonly Setting<unknown>[] {
  return Object.values(SETTINGS);
}

function defaultText(row: Setting<unknown>): string {
  return row.defaultText ?? row.kind.show(row.default);
}

function code(text: string): string {
  return `\`${text}\``;
}
