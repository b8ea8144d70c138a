// Makes the files that the package procession-page carries (src/page/built) out of the page's sources (src/page/files):
// one script and one style sheet for the first screen, and one of each for what is fetched when somebody opens it.
// Who builds or embeds the library needs none of this, because what it makes is in the repository.
//
//     npm run bundle              after a change of the page's sources
//     npm run bundle -- --check   says whether that was done
//
// Node, rolldown and lightningcss are pinned by package-lock.json, so everybody makes the same bytes.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle as bundleCss } from 'lightningcss';
import { rolldown } from 'rolldown';

const PAGE = fileURLToPath(new URL('../../src/page/', import.meta.url));
const SOURCES = join(PAGE, 'files');
const BUILT = join(PAGE, 'built');
/** What the first screen is drawn with; the names are those in index.html. */
const SCRIPT = 'app.js';
const STYLES = ['page.css', 'css/attempt.css', 'css/charts.css', 'css/machine.css', 'vendor/uplot.css'];

/** What others wrote is what the table says. */
function checkVendored() {
  for (const { file, sha256 } of JSON.parse(read('vendor/versions.json').toString())) {
    const found = createHash('sha256').update(read(`vendor/${file}`)).digest('hex');
    if (found !== sha256) throw new Error(`vendor/${file} has the hash ${found}, and vendor/versions.json says ${sha256}`);
  }
}

/** @param {string} path */
const read = (path) => readFileSync(join(SOURCES, path));

/** Scripts by their names: page.js has all that the first screens import, and each late part one of its own. */
async function scripts() {
  const build = await rolldown({ input: { entry: join(SOURCES, SCRIPT) }, preserveEntrySignatures: false });
  const { output } = await build.generate({
    format: 'esm',
    minify: true,
    comments: { legal: false }, // The licences of what others wrote are files beside it.
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    codeSplitting: {
      groups: [
        // Each with all that it imports. What is in the first is in no other.
        { name: 'page', priority: 1, test: (id) => id === join(SOURCES, SCRIPT) },
        { name: 'layout', test: (id) => id === join(SOURCES, 'layout.js') },
      ],
    },
  });
  await build.close();
  // The entry itself is nothing but an import of page.js.
  return output.filter((made) => !made.isEntry).map((made) => [made.fileName, made.code]);
}

/** Style sheets by their paths. */
const styles = () => STYLES.map((path) => [
  basename(path),
  bundleCss({ filename: join(SOURCES, path), minify: true }).code,
]);

/** What is sent as it is. */
const texts = () => [
  'index.html',
  'icon.svg',
  'theme.js',
  'vendor/versions.json',
  ...readdirSync(join(SOURCES, 'vendor')).filter((name) => name.endsWith('.LICENSE.txt')).map((name) => `vendor/${name}`),
].map((path) => [path, read(path)]);

/** The paths of all files of a folder. @param {string} folder @returns {string[]} */
function filesOf(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

checkVendored();
const made = new Map([...(await scripts()), ...styles(), ...texts()].map(([path, body]) => [path, Buffer.from(body)]));
if (process.argv.includes('--check')) {
  const there = new Set(filesOf(BUILT));
  const wrong = [...new Set([...made.keys(), ...there])].filter((path) => (
    !made.has(path) || !there.has(path) || !made.get(path)?.equals(readFileSync(join(BUILT, path)))
  ));
  if (wrong.length > 0) {
    console.error(`src/page/built is not what src/page/files makes: ${wrong.join(', ')}. Run 'npm run bundle' in tests/browser.`);
    process.exit(1);
  }
} else {
  rmSync(BUILT, { recursive: true, force: true });
  for (const [path, body] of made) {
    mkdirSync(dirname(join(BUILT, path)), { recursive: true });
    writeFileSync(join(BUILT, path), body);
  }
}
