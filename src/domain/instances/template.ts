// The name of a template, by which clients call it. balancing/policy.ts has the settings of a template;
// src/templates reads the definition file template.json.

/** Template names are used in URLs and commands. */
export const TEMPLATE_PATTERN = '^[a-z][a-z0-9-]*$';
export const LONGEST_TEMPLATE = 128;

export function isTemplateId(name: string): boolean {
  return name.length <= LONGEST_TEMPLATE && new RegExp(TEMPLATE_PATTERN).test(name);
}
