// The index of the decisions by subject. Titles come from the files; a decision without a subject here is listed last.

import { readdirSync, readFileSync } from 'node:fs';

const SUBJECTS: Readonly<Record<string, readonly number[]>> = {
  'Structure of the program': [1, 2, 369, 3, 63, 13, 37, 66, 213, 308, 339, 368, 374, 84, 180],
  'Configuration, errors and documents': [4, 129, 5, 107, 370, 21, 125, 72, 229],
  'Instances, templates and the registry': [6, 15, 324, 57, 58, 59, 60, 98, 65, 373, 122, 235, 238, 242],
  'Balancing, health and retries': [
    7, 130, 109, 127, 9, 83, 39, 40, 101, 103, 41, 113, 114, 115, 142, 67, 68, 71, 131, 303, 325, 340, 150,
    384, 379, 179, 243,
  ],
  'Child processes': [11, 362, 160, 85, 14, 26, 38, 48, 51, 87, 133, 327, 328, 346, 360, 52, 69, 104],
  'Protocol eras and translation': [10, 23, 31, 245, 32, 33, 49, 50, 119, 110, 134, 121, 106],
  'MCP endpoint and sessions': [
    24, 108, 25, 27, 28, 29, 93, 116, 239, 117, 225, 240, 234, 237, 267, 268, 334, 367, 232, 253, 270, 233,
    353, 241, 263, 105, 30, 34, 35, 70, 81, 111, 281, 138, 252, 385, 302, 331, 345, 366, 323, 143, 294, 145,
    165, 259, 258, 310, 350, 355, 357, 361, 371, 363, 364, 265, 274,
  ],
  'Bytes and memory': [
    8, 137, 176, 118, 135, 42, 112, 120, 128, 90, 91, 333, 335, 43, 329, 44, 45, 322, 348, 349, 359, 89, 79,
    163, 152, 139, 140, 342, 257,
  ],
  'Fairness of the event loop': [
    36, 94, 264, 297, 272, 273, 197, 279, 337, 338, 312, 317, 136, 144, 255, 102, 132, 343, 354, 356,
  ],
  'Accounts and security': [
    12, 16, 251, 17, 92, 189, 212, 100, 20, 22, 73, 77, 99, 78, 358, 82, 382, 88, 95, 124, 154, 201, 202, 203,
    204, 205, 206, 207, 208, 214, 215, 226, 227, 224, 218, 248, 220, 221, 228, 283, 277, 230, 326, 352, 299,
    313, 307, 316, 321, 332, 318, 278, 256, 306, 266, 269, 231, 254, 247, 262, 261, 290, 271, 276, 282, 285,
  ],
  'Databases and several gateways': [
    18, 301, 19, 46, 47, 97, 146, 275, 147, 53, 157, 123, 148, 178, 190, 344, 320, 196, 319, 200, 170, 149,
    171, 158, 159, 168, 295, 185, 198, 169, 186, 162, 365, 381, 372, 164, 260, 161, 166, 167, 172, 173, 193,
    244, 174, 377, 289, 175, 182, 153, 188, 183, 194, 191, 192, 249, 222, 380, 250, 330, 341,
  ],
  'Events, metrics and traces': [55, 141, 74, 199, 75, 126, 177, 76, 80],
  'Command line, clients and deployment': [
    54, 56, 61, 62, 286, 314, 64, 156, 96, 209, 210, 216, 217, 236, 246,
  ],
};

const folder = new URL('../../docs/adr/', import.meta.url);

export function adrIndex(): string {
  const files = readdirSync(folder).filter((name) => /^\d{4}-.*\.md$/.test(name));
  const byNumber = new Map(files.map((file) => [Number(file.slice(0, 4)), file]));
  const sections = Object.entries(SUBJECTS).map(([subject, numbers]) => {
    const items = numbers.map((number) => {
      const file = byNumber.get(number);
      if (file === undefined) throw new Error(`there is no ADR ${number}`);
      byNumber.delete(number);
      return `- [${titleOf(file)}](${file})`;
    });
    return `## ${subject}\n\n${items.join('\n')}`;
  });
  const others = [...byNumber.values()].map((file) => `- [${titleOf(file)}](${file})`);
  return [...sections, ...(others.length > 0 ? [`## Other\n\n${others.join('\n')}`] : [])].join('\n\n');
}

function titleOf(file: string): string {
  const [first = ''] = readFileSync(new URL(file, folder), 'utf8').split('\n', 1);
  return first.replace(/^# /, '');
}
