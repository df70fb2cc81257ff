// The index of the decisions by subject. Titles come from the files.

import { readdirSync, readFileSync } from 'node:fs';

const SUBJECTS: Readonly<Record<string, readonly number[]>> = {
  'Structure of the program': [1, 2, 3, 213, 195, 374, 423, 84, 180, 420, 441],
  'Configuration, errors and documents': [4, 5, 107, 21, 72],
  'Instances, templates and the registry': [6, 324, 57, 58, 59, 60, 65, 235, 238],
  'Balancing, health and retries': [7, 109, 83, 39, 40, 41, 113, 384, 243],
  'Child processes': [11, 160, 85, 26, 87, 52, 69],
  'Protocol eras and translation': [10, 31, 32, 50, 119, 110, 106],
  'MCP endpoint and sessions': [
    24, 108, 25, 27, 28, 29, 93, 116, 117, 234, 237, 268, 232, 241, 30, 34, 35, 70, 111, 281, 138, 419, 143,
    145, 165, 350, 357,
  ],
  'Bytes and memory': [
    137, 176, 401, 135, 42, 120, 90, 91, 398, 463, 415, 335, 43, 44, 45, 322, 89, 79, 139, 140, 257,
  ],
  'Fairness of the event loop': [36, 94, 338, 312, 397, 421, 144, 102, 132, 343],
  'Accounts and security': [
    12, 16, 251, 17, 92, 189, 212, 20, 22, 73, 77, 82, 88, 386, 154, 201, 202, 203, 393, 204, 205, 206, 207,
    208, 214, 215, 226, 227, 224, 218, 220, 221, 228, 283, 230, 326, 299, 440, 321, 332, 278, 306, 231, 254,
    247, 276, 282, 285,
  ],
  'Databases and several gateways': [
    18, 301, 19, 46, 47, 146, 275, 147, 53, 157, 148, 190, 196, 319, 170, 171, 158, 159, 168, 295, 169, 186,
    162, 365, 164, 161, 167, 172, 173, 174, 175, 182, 153, 194, 250, 330, 341,
  ],
  'Events, metrics and traces': [55, 74, 199, 75, 126, 76, 80],
  'Command line, clients and deployment': [54, 56, 378, 61, 62, 286, 64, 156, 96, 209, 216, 217, 236],
};

const folder = new URL('../../docs/adr/', import.meta.url);

/** One decision, as its file says. */
export interface Decision {
  readonly number: number;
  readonly file: string;
  readonly title: string;
  /** The paragraph after the title. */
  readonly status: string;
  /** The decisions whose place it has taken. They have no files any more. Source: ADR 441. */
  readonly replaces: readonly number[];
}

/** All decisions, by number. */
export function readDecisions(): ReadonlyMap<number, Decision> {
  const files = readdirSync(folder).filter((name) => /^\d{4}-.*\.md$/.test(name));
  return new Map(files.map((file) => [Number(file.slice(0, 4)), readDecision(file)]));
}

export function adrIndex(): string {
  const left = new Map(readDecisions());
  const sections = Object.entries(SUBJECTS).map(([subject, numbers]) => {
    const items = numbers.map((number) => {
      const decision = left.get(number);
      if (decision === undefined) throw new Error(`ADR ${number} does not exist, or has two subjects`);
      left.delete(number);
      return `- [${decision.title}](${decision.file})`;
    });
    return `## ${subject}\n\n${items.join('\n')}`;
  });
  if (left.size > 0) throw new Error(`no subject has ADR ${[...left.keys()].join(', ')}`);
  return sections.join('\n\n');
}

function readDecision(file: string): Decision {
  const text = readFileSync(new URL(file, folder), 'utf8').replaceAll('\r\n', '\n');
  const [heading = '', status = ''] = text.split('\n\n', 2);
  const replaced = /^Replaces: (\d+(?:, \d+)*) \(in the history\)\.$/m.exec(status)?.[1];
  return {
    number: Number(file.slice(0, 4)),
    file,
    title: heading.replace(/^# /, ''),
    status,
    replaces: replaced?.split(', ').map(Number) ?? [],
  };
}
