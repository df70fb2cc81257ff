// Every setting: its meaning, values, default and spellings, from the table in src/config/settings.ts.

import type { Setting } from '../../src/config/setting-types.ts';
import { ALL_SETTINGS } from '../../src/config/settings.ts';
import { code, item, linked, wrap } from './markdown.ts';

export function settingsReference(): string {
  return ALL_SETTINGS.map(section).join('\n\n');
}

function section(row: Setting<unknown>): string {
  const { key, flag, variable, kind, secret, mustAgree, doc } = row;
  const value = row.defaultText ?? kind.show(row.default);
  const names = [`MCP_GATEWAY_${variable}`, `GATEWAY_${variable}`].map(code).join(' or ');
  return [
    `### ${code(key)}`,
    '',
    wrap(linked(`${doc}${secret ? ' Secret.' : ''}${mustAgree ? ' All nodes need the same value.' : ''}`)),
    '',
    item(`Value: ${kind.type}`),
    ...(value === '' ? [] : [item(`Default: ${row.defaultText === undefined ? code(value) : value}`)]),
    item(`${flag === undefined ? '' : `Flag ${code(`--${flag}`)}; `}environment ${names}`),
  ].join('\n');
}
