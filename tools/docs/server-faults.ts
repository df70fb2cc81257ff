// The page of the faults of servers, from the table in src/gateway/doctor/faults.ts.

import { FAULTS } from '../../src/gateway/doctor/faults.ts';
import { table } from './markdown.ts';

const HEAD = ['Fault', 'What the gateway does', 'What to change in the server', 'Code'];

export function serverFaultsReference(): string {
  const sections = Object.entries(FAULTS).map(([section, faults]) => {
    const rows = faults.map(({ fault, gateway, remedy, code, unseen = '' }) => [
      fault,
      gateway,
      remedy,
      code === undefined ? unseen : `\`${code}\``,
    ]);
    return `## ${section}\n\n${table(HEAD, rows)}`;
  });
  return sections.join('\n\n');
}
