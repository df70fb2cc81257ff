// Throws in a Node that is too old. src/index.ts imports this file for that effect, before anything else, so
// that this message comes before a library fails with a misleading one. The command line checks the version
// in bin/node-version.mjs.

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 18))
  throw new Error(
    `stagedoor needs Node 22.18 or later; this is Node ${process.versions.node}; type: npx -y node@24 <file>`,
  );
