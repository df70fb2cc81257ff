// The word of the command line that names a server by its address, and not a template.

export function isServerUrl(word: string): boolean {
  return /^https?:\/\//i.test(word);
}
