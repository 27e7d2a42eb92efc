import { readable } from './readable-text.js'

/**
 * A stack for reading: the app's own frames stand out, and runs of other frames are folded.
 * @typedef {import('../crashes/stack-frames.js').Frame} Frame
 * @typedef {{ number: number, text: string }[] | null} Lines  source lines around the place, if known
 * @typedef {{ name: string, place: string, isInApp: boolean, line: number | null, lines: Lines, isFirst: boolean }} ShownFrame
 *   `isFirst`: the first frame with lines
 * @typedef {{ isFolded: boolean, label: string, frames: ShownFrame[] }} Run  neighbouring frames
 */

const NODE_FILE = /^node:/
/** Where languages keep the packages of others, with the name of the package. */
const PACKAGES = Object.freeze([
  /(?:^|[\\/])node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/g,
  /\/(?:site|dist)-packages\/([^/]+)/g,
  /\/pkg\/mod\/([^@]+)@/g,
  /\/gems\/([^/]+?)-\d[^/]*\//g,
  /\/\.cargo\/registry\/src\/[^/]+\/([^/]+?)-\d[^/]*\//g,
  /\/vendor\/([^/]+\/[^/]+)\//g
])
/** @type {readonly [string, RegExp][]} */
const LANGUAGES = Object.freeze([['Node.js', NODE_FILE], ['Python', /\/lib(?:64)?\/python[\d.]*\/|^<frozen /], ['Go', /\/go[^/]*\/src\/|\/golang\.org\/toolchain@/], ['Java', /^(?:javax?|jdk|sun|com\/sun)\//], ['Rust', /^\/rustc\//], ['Ruby', /\/lib\/ruby\/|^<internal:/], ['Deno', /^ext:/]])
const MAX_OWNERS = 3

/**
 * @param {Frame[]} frames innermost first
 * @param {Lines[]} [lines] one entry per frame
 * @returns {Run[]} nothing is folded if no frame is the app's
 */
export function foldFrames (frames, lines = []) {
  const first = lines.findIndex(Boolean)
  const hasOwn = frames.some(({ isInApp }) => isInApp)
  /** @type {{ owners: string[], frames: ShownFrame[] }[]} */
  const runs = []
  for (const [index, frame] of frames.entries()) {
    if (runs.at(-1)?.frames[0].isInApp !== frame.isInApp) runs.push({ owners: [], frames: [] })
    const last = runs[runs.length - 1]
    last.owners.push(ownerOf(frame))
    last.frames.push(toShown(frame, lines[index] ?? null, index === first))
  }
  return runs.map(({ owners, frames }) => ({ isFolded: hasOwn && !frames[0].isInApp, label: labelOf(frames, [...new Set(owners)]), frames }))
}

/** @param {ShownFrame[]} frames @param {string[]} owners */
function labelOf (frames, owners) {
  const named = owners.slice(0, MAX_OWNERS).join(', ')
  return `${frames.length} ${frames.length === 1 ? 'frame' : 'frames'} of ${named}${owners.length > MAX_OWNERS ? ' and others' : ''}`
}

/** @param {Frame} frame */
function ownerOf ({ file }) {
  if (file === null) return 'the runtime'
  const [name] = PACKAGES.map((pattern) => [...file.matchAll(pattern)].at(-1)?.[1]).filter((found) => found !== undefined)
  return readable(name ?? LANGUAGES.find(([, pattern]) => pattern.test(file))?.[0] ?? 'others').slice(0, 60)
}

/** @param {Frame} frame @param {Lines} lines @param {boolean} isFirst @returns {ShownFrame} */
function toShown ({ function: name, file, line, column, isInApp }, lines, isFirst) {
  const place = [file ?? 'native code', line, column].filter((part) => part !== null && part !== undefined).join(':')
  return { name: readable(name ?? '(anonymous)'), place: readable(place), isInApp, line, lines, isFirst }
}
