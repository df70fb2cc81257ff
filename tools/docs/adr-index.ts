// The index of the decisions by subject. Titles and what supersedes a decision come from the files; a decision that is superseded as a
// whole is listed last, whatever its subject.

import { readdirSync, readFileSync } from 'node:fs';

const SUBJECTS: Readonly<Record<string, readonly number[]>> = {
  'Structure of the program': [1, 2, 3, 213, 195, 374, 423, 84, 180, 420, 441],
  'Configuration, errors and documents': [4, 5, 107, 21, 72],
  'Instances, templates and the registry': [6, 324, 57, 58, 59, 60, 65, 235, 238],
  'Balancing, health and retries': [7, 109, 83, 39, 40, 41, 113, 384, 451, 243],
  'Child processes': [11, 160, 85, 26, 87, 52, 69],
  'Protocol eras and translation': [10, 31, 32, 50, 119, 110, 106],
  'MCP endpoint and sessions': [
    24, 108, 25, 27, 28, 29, 93, 116, 117, 392, 225, 240, 234, 237, 267, 461, 268, 232, 253, 270, 233, 241, 263,
    105, 30, 34, 35, 70, 81, 111, 281, 138, 419, 143, 145, 165, 350, 357, 265,
  ],
  'Bytes and memory': [
    8, 137, 176, 401, 404, 118, 135, 42, 120, 128, 90, 91, 333, 396, 398, 402, 412, 403, 415, 335, 43, 329,
    44, 387, 45, 405, 322, 348, 349, 359, 89, 79, 163, 152, 139, 399, 140, 342, 257,
  ],
  'Fairness of the event loop': [
    36, 94, 264, 297, 197, 279, 337, 338, 312, 317, 136, 397, 421, 144, 255, 102, 132, 343, 354, 356,
  ],
  'Accounts and security': [
    12, 16, 251, 17, 92, 189, 212, 100, 20, 22, 73, 77, 99, 78, 358, 82, 382, 88, 95, 386, 124, 154, 201, 202,
    203, 393, 204, 394, 406, 205, 206, 207, 208, 214, 407, 215, 226, 227, 224, 218, 248, 388, 220, 221, 228,
    283, 277, 230, 326, 299, 313, 307, 316, 414, 440, 321, 332, 318, 278, 306, 231, 254, 247, 262, 261, 290,
    271, 276, 282, 285,
  ],
  'Databases and several gateways': [
    18, 301, 19, 46, 47, 97, 146, 275, 147, 53, 157, 148, 178, 413, 190, 344, 320, 196, 319, 200, 170, 149,
    171, 158, 159, 168, 395, 295, 185, 198, 169, 186, 400, 162, 365, 381, 372, 164, 260, 161, 166, 167, 172,
    173, 193, 244, 174, 377, 289, 175, 182, 153, 188, 183, 194, 191, 192, 249, 222, 380, 250, 330, 341,
  ],
  'Events, metrics and traces': [55, 141, 74, 199, 75, 126, 177, 76, 80],
  'Command line, clients and deployment': [
    54, 56, 378, 61, 62, 286, 64, 156, 96, 209, 210, 430, 216, 217, 236, 246,
  ],
};

const folder = new URL('../../docs/adr/', import.meta.url);

/** One decision, as its file says. */
export interface Decision {
  readonly number: number;
  readonly file: string;
  readonly title: string;
  /** The paragraph after the title, without the targets of its links. */
  readonly status: string;
  /** The decisions that supersede it, or parts of it. */
  readonly supersededBy: readonly number[];
  /** False when only parts are superseded. */
  readonly isSuperseded: boolean;
}

/** All decisions, by number. */
export function readDecisions(): ReadonlyMap<number, Decision> {
  const files = readdirSync(folder).filter((name) => /^\d{4}-.*\.md$/.test(name));
  return new Map(files.map((file) => [Number(file.slice(0, 4)), readDecision(file)]));
}

export function adrIndex(): string {
  const decisions = readDecisions();
  const left = new Map(decisions);
  const sections = Object.entries(SUBJECTS).map(([subject, numbers]) => {
    const items = numbers.map((number) => {
      const decision = left.get(number);
      if (decision === undefined) throw new Error(`ADR ${number} does not exist, or has two subjects`);
      left.delete(number);
      return decision;
    });
    return sectionOf(subject, items.filter(({ isSuperseded }) => !isSuperseded).map(itemOf));
  });
  if (left.size > 0) throw new Error(`no subject has ADR ${[...left.keys()].join(', ')}`);
  const superseded = [...decisions.values()].filter(({ isSuperseded }) => isSuperseded);
  return [...sections, sectionOf('Superseded', superseded.map(itemOf))].join('\n\n');
}

function readDecision(file: string): Decision {
  const text = readFileSync(new URL(file, folder), 'utf8').replaceAll('\r\n', '\n');
  const [heading = '', statusLines = ''] = text.split('\n\n', 2);
  const status = statusLines
    .replaceAll('\n', ' ')
    .replace(/^\**Status:\** /, '')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
  return {
    number: Number(file.slice(0, 4)),
    file,
    title: heading.replace(/^# /, ''),
    status,
    supersededBy: /superseded/i.test(status)
      ? [...status.matchAll(/(?<!extended |amended )\bby ADR (\d+)/gi)].map(([, number]) => Number(number))
      : [],
    isSuperseded: /^superseded by ADR \d+(?:[.,]|$)/.test(status),
  };
}

function sectionOf(subject: string, items: readonly string[]): string {
  return `## ${subject}\n\n${items.join('\n')}`;
}

function itemOf({ title, file, supersededBy, isSuperseded }: Decision): string {
  const link = `- [${title}](${file})`;
  if (supersededBy.length === 0) return link;
  return isSuperseded
    ? `${link}: by ${supersededBy[0]}`
    : `${link} (in part superseded by ${supersededBy.join(', ')})`;
}
