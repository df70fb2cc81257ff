// The name of a template, by which clients call it. balancing/load-balancer.ts has the settings of its instances; src/templates reads
// the definition file template.json.

import Type from 'typebox';

/** Template names are used in URLs and commands. */
const PATTERN = '^[a-z][a-z0-9-]*$';
const LONGEST_ID = 128;
export const TemplateId = Type.String({ pattern: PATTERN, maxLength: LONGEST_ID, examples: ['everything'] });

export function isTemplateId(name: string): boolean {
  return name.length <= LONGEST_ID && new RegExp(PATTERN).test(name);
}
