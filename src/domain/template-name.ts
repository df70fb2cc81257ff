// The name of a template, by which clients call it. balancing/policy.ts has the settings of a template;
// src/templates reads the definition file template.json.

export const LONGEST_TEMPLATE = 128;
/** Template names are used in URLs and commands. The length is checked apart, for a better message. */
export const TEMPLATE_PATTERN = '^[a-z][a-z0-9-]*$';
/** A template name, or that of a view, as a part of other patterns. */
export const TEMPLATE_NAME = `[a-z][a-z0-9-]{0,${LONGEST_TEMPLATE - 1}}`;

export function isTemplateId(name: string): boolean {
  return name.length <= LONGEST_TEMPLATE && new RegExp(TEMPLATE_PATTERN).test(name);
}
