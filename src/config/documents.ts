// Makes of the table of settings the options that the command line declares.

import type { Setting } from './setting.ts';
import { boolean } from './setting-types.ts';
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

function allSettings(): readonly Setting<unknown>[] {
  return Object.values(SETTINGS);
}

function defaultText(row: Setting<unknown>): string {
  return row.defaultText ?? row.kind.show(row.default);
}
