// The folder of this package, for the files in it that are not modules.

/** The URL of that folder. Both this file and its place in dist/program are two folders below it. */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);
