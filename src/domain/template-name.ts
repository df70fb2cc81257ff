// The name of a template, by which clients call it. balancing/policy.ts has the settings of a template;
// src/templates reads the definition file template.json.

export const MAX_TEMPLATE_LENGTH = 128;
/** Template names are used in URLs and commands. The length is checked apart, for a better message. */
export const TEMPLATE_PATTERN = '^[a-z][a-z0-9-]*$';
/** A template name, or that of a view, as a part of other patterns. */
export const TEMPLATE_NAME = `[a-z][a-z0-9-]{0,${MAX_TEMPLATE_LENGTH - 1}}`;

/** The rule of `isTemplateId` in words. */
export const TEMPLATE_RULE =
  'lower-case letters from a to z, digits and dashes, a letter first, and at most 128 characters';

export function isTemplateId(name: string): boolean {
  return name.length <= MAX_TEMPLATE_LENGTH && new RegExp(TEMPLATE_PATTERN).test(name);
}
