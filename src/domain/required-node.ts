// Refuses to go on in a Node that is too old. Imported for that effect by src/index.ts, before anything else: what is
// imported first is evaluated first, so this message comes before a library fails with a misleading one.
// The command line has its own way out of an old Node, bin/node-version.mjs.

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 18))
  throw new Error(`stagedoor needs Node 22.18 or later; this is Node ${process.versions.node}`);
