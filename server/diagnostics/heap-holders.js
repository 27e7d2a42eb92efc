/**
 * What holds the memory of a heap. Objects are told apart by the way that keeps them: the names from the roots of the heap down,
 * with the many places of a list, a map or a cache told as one.
 * @typedef {import('./heap-file.js').Heap} Heap
 * @typedef {object} Holder
 * @property {string[]} path  names from the roots to the objects
 * @property {string} className  of the objects
 * @property {number} count  how many there are
 * @property {number} bytes  of these, with what the shortest way to leads over them: about what would be freed without them
 * @property {string | null} file  of the code that has them
 *
 * @typedef {{ index: number, label: string, className: string, parent: Way | null, below: Map<string, Way>, count: number, bytes: number, firstNode: number }} Way  `bytes`: with all below
 */

/** An object with more names is used as a map. */
const MANY_NAMES = 200
/** A chain repeats after so many steps at most: that of promises, of a linked list, of a text that was built by parts. */
const REPEATS_WITHIN = 6
/** A heap may have no order at all. */
const MAX_WAYS = 200_000
const MAX_NAME_CHARS = 100
const MAX_PATH = 40
/** What is less than this share of all is not told, and not kept. */
const LEAST_SHARE = 0.01
/** What holds so much of what is above it is the reason for that. */
const MOST_OF_IT = 0.5
/** So many objects at one place are many. */
const MANY = 20
/** Of these types the name is that of a class; the others have contents as their name. */
const HAVE_CLASSES = new Set(['object', 'closure', 'native', 'synthetic'])
const ROOTS_OF_V8 = '(GC roots)'
/** Node ends all of these with a worker, but does not keep them. */
const CLEANED_UP = 'cleanup_queue'
const PLACE = '[]'

/** @param {Heap} heap @returns {{ bytes: number, holders: Holder[] }} `bytes`: of all; `holders`: of the most first */
export function findHolders (heap, { most = 5 } = {}) {
  const { root, fileOf } = findWays(heap)
  const holders = listHolders(root).sort((one, other) => other.bytes - one.bytes).slice(0, most)
  return { bytes: root.bytes, holders: holders.map(toHolder) }

  /** Where only the runtime keeps the objects, as it does timers, what they hold tells whose they are. @param {Way} way @returns {Holder} */
  function toHolder (way) {
    const { className, count, bytes } = way
    const inside = fileOf(way) === null ? trailFrom(way).findLast((each) => fileOf(each) !== null) : way
    return { path: pathOf(inside ?? way), className, count, bytes, file: inside ? fileOf(inside) : null }
  }
}

/** Each object counts once, where the shortest way leads. @param {Heap} heap */
function findWays (heap) {
  const { nodeCount, nodeTypes, nodeNames, nodeBytes, firstEdges, edgeTypes, edgeNames, edgeTargets, typeNames, edgeTypeNames, strings } = heap
  /** Parents come before those below them. @type {Way[]} */
  const ways = []
  const root = createWay('', '', null, 0)
  /** The index of its way, by node. */
  const wayOf = new Uint32Array(nodeCount)
  /** From which node it was reached; the root from itself. */
  const cameFrom = new Uint32Array(nodeCount)
  const isKnown = new Uint8Array(nodeCount)
  const queue = new Uint32Array(nodeCount)
  let [head, tail] = [0, 1]
  /** What only the roots of V8 and Node keep comes after all that the program has names for. @type {number[]} */
  const later = []
  isKnown[0] = 1
  while (head < tail) {
    visit(queue[head++])
    if (head === tail && later.length > 0) queue[tail++] = Number(later.shift())
  }
  for (const way of ways.toReversed()) if (way.parent) way.parent.bytes += way.bytes
  return { root, fileOf }

  /** @param {number} node */
  function visit (node) {
    const names = firstEdges[node + 1] - firstEdges[node]
    for (let edge = firstEdges[node]; edge < firstEdges[node + 1]; edge++) {
      const type = edgeTypeNames[edgeTypes[edge]]
      const target = edgeTargets[edge]
      if (type === 'weak' || isKnown[target]) continue
      isKnown[target] = 1
      cameFrom[target] = node
      const isPlace = type === 'element' || type === 'hidden' || (type === 'property' && names > MANY_NAMES)
      const name = isPlace ? PLACE : textOf(edgeNames[edge])
      const className = classOf(target)
      const way = stepTo(ways[wayOf[node]], /^\d+$/.test(name) ? PLACE : name, className, target)
      way.count++
      way.bytes += nodeBytes[target]
      wayOf[target] = way.index
      if ((node === 0 && className === ROOTS_OF_V8) || name === CLEANED_UP) later.push(target)
      else queue[tail++] = target
    }
  }

  /** A chain is one way, however long it is. @param {Way} from @param {string} label @param {string} className @param {number} node */
  function stepTo (from, label, className, node) {
    let up = /** @type {Way | null} */ (from)
    for (let steps = 1; up && steps <= REPEATS_WITHIN; up = up.parent, steps++) {
      if (isLike(up, { label, className }) && isLike(above(up, steps), up) && isLike(above(from, steps), from)) return up
    }
    const key = `${label}\0${className}`
    return from.below.get(key) ?? (ways.length < MAX_WAYS ? createWay(label, className, from, node) : from)
  }

  /** @param {string} label @param {string} className @param {Way | null} parent @param {number} firstNode */
  function createWay (label, className, parent, firstNode) {
    /** @type {Way} */
    const way = { index: ways.length, label, className, parent, below: new Map(), count: 0, bytes: 0, firstNode }
    ways.push(way)
    parent?.below.set(`${label}\0${className}`, way)
    return way
  }

  /** @param {number} string */
  function textOf (string) {
    return String(strings[string] ?? '').slice(0, MAX_NAME_CHARS)
  }

  /** @param {number} node */
  function classOf (node) {
    const type = typeNames[nodeTypes[node]]
    return HAVE_CLASSES.has(type) ? textOf(nodeNames[node]) : `(${type})`
  }

  /** The file of the function, or of the module, that is nearest above. @param {Way} way @returns {string | null} */
  function fileOf (way) {
    let node = way.firstNode
    for (let steps = 0; steps < MAX_PATH && node !== 0; node = cameFrom[node], steps++) {
      const file = typeNames[nodeTypes[node]] === 'closure' ? fileOfFunction(node) : classOf(node) === 'Module' ? targetText(targetOf(node, 'filename')) : null
      if (file && /^(\/|file:\/\/)/.test(file)) return file.replace(/^file:\/\//, '')
    }
    return null
  }

  /** @param {number} node */
  function fileOfFunction (node) {
    const shared = targetOf(node, 'shared')
    const script = shared === null ? null : targetOf(shared, 'script') ?? targetOf(shared, 'script_or_debug_info')
    return script === null ? null : targetText(targetOf(script, 'name'))
  }

  /** @param {number} node @param {string} name @returns {number | null} */
  function targetOf (node, name) {
    for (let edge = firstEdges[node]; edge < firstEdges[node + 1]; edge++) {
      const type = edgeTypeNames[edgeTypes[edge]]
      if (type !== 'element' && type !== 'hidden' && strings[edgeNames[edge]] === name) return edgeTargets[edge]
    }
    return null
  }

  /** @param {number | null} node  a text */
  function targetText (node) {
    return node === null ? null : String(strings[nodeNames[node]] ?? '')
  }
}

/** @param {Way} way @param {number} steps @returns {Way | null} */
function above (way, steps) {
  let at = /** @type {Way | null} */ (way)
  for (let step = 0; step < steps && at; step++) at = at.parent
  return at
}

/** @param {Pick<Way, 'label' | 'className'> | null} one @param {Pick<Way, 'label' | 'className'> | null} other */
function isLike (one, other) {
  return one?.label === other?.label && one?.className === other?.className
}

/**
 * Follows what holds most of the memory, down from each place that holds a part of it. On such a trail the place is meant at which
 * one thing has most objects: a list, a map, a bus of listeners. Without one it is the end, such as a long text.
 * @param {Way} root @returns {Way[]}
 */
function listHolders (root) {
  const least = root.bytes * LEAST_SHARE
  /** @type {Way[]} */
  const found = []
  const begins = [root]
  for (let begin = begins.pop(); begin; begin = begins.pop()) {
    const trail = trailFrom(begin)
    const many = mostAtOnce(trail)
    const place = many ?? trail[trail.length - 1]
    const parts = partsOf(place, least)
    if (many || parts.length === 0) found.push(place)
    else begins.push(...parts)
    // What hangs beside the trail.
    for (const [index, way] of trail.slice(0, trail.indexOf(place)).entries()) begins.push(...partsOf(way, least).filter((part) => part !== trail[index + 1]))
  }
  return found
}

/** @param {Way} begin @returns {Way[]} with that which holds most of each */
function trailFrom (begin) {
  const trail = [begin]
  for (let way = begin, next; trail.length < MAX_PATH; way = next) {
    next = [...way.below.values()].find(({ bytes }) => bytes >= way.bytes * MOST_OF_IT)
    if (!next) break
    trail.push(next)
  }
  return trail
}

/** @param {Way[]} trail @returns {Way | undefined} */
function mostAtOnce (trail) {
  const timesOf = (/** @type {Way} */ { count, parent }) => count / Math.max(1, parent?.count ?? 1)
  return trail.filter((way) => timesOf(way) >= MANY).sort((one, other) => timesOf(other) - timesOf(one))[0]
}

/** @param {Way} way @param {number} least */
function partsOf ({ below }, least) {
  return [...below.values()].filter(({ bytes }) => bytes >= least)
}

/** @param {Way} way @returns {string[]} */
function pathOf (way) {
  const path = []
  for (let at = /** @type {Way | null} */ (way); at?.parent && path.length < MAX_PATH; at = at.parent) path.unshift(at.label)
  return path
}
