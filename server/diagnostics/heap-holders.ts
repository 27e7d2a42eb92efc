import type { Heap } from './heap-file.ts'

/**
 * What holds the memory of a heap. Objects are told apart by the way that keeps them: the names from the roots of the
 * heap down, with the many places of a list, a map or a cache told as one.
 */
export type Holder = {
  /** names from the roots to the objects */
  path: string[],
  /** of the objects */
  className: string,
  /** how many there are */
  count: number,
  /** of these, with what the shortest way to leads over them: about what would be freed without them */
  bytes: number,
  /** of the code that has them */
  file: string | null
}
/** `bytes`: with all below */
type Way = { index: number, label: string, className: string, parent: Way | null, below: Map<string, Way>,
  count: number, bytes: number, firstNode: number }

/** An object with more names is used as a map. */
const MANY_NAMES = 200
/**
 * A chain repeats after so many steps at most: that of promises, of a linked list, of a text that was built by parts.
 */
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

/** @returns `bytes`: of all; `holders`: of the most first */
export function findHolders (heap: Heap, { most = 5 } = {}): { bytes: number, holders: Holder[] } {
  const { root, fileOf } = findWays(heap)
  const holders = listHolders(root).sort((one, other) => other.bytes - one.bytes).slice(0, most)
  return { bytes: root.bytes, holders: holders.map(toHolder) }

  /** Where only the runtime keeps the objects, as it does timers, what they hold tells whose they are. */
  function toHolder (way: Way): Holder {
    const { className, count, bytes } = way
    const inside = fileOf(way) === null ? trailFrom(way).findLast((each) => fileOf(each) !== null) : way
    return { path: pathOf(inside ?? way), className, count, bytes, file: inside ? fileOf(inside) : null }
  }
}

/** Each object counts once, where the shortest way leads. */
function findWays (heap: Heap) {
  const { nodeCount, nodeTypes, nodeNames, nodeBytes, firstEdges, edgeTypes, edgeNames, edgeTargets, typeNames,
    edgeTypeNames, strings } = heap
  /** Parents come before those below them. */
  const ways: Way[] = []
  const root = createWay('', '', null, 0)
  /** The index of its way, by node. */
  const wayOf = new Uint32Array(nodeCount)
  /** From which node it was reached; the root from itself. */
  const cameFrom = new Uint32Array(nodeCount)
  const isKnown = new Uint8Array(nodeCount)
  const queue = new Uint32Array(nodeCount)
  let [head, tail] = [0, 1]
  /** What only the roots of V8 and Node keep comes after all that the program has names for. */
  const later: number[] = []
  isKnown[0] = 1
  while (head < tail) {
    visit(queue[head++])
    if (head === tail && later.length > 0) queue[tail++] = Number(later.shift())
  }
  for (const way of ways.toReversed()) if (way.parent) way.parent.bytes += way.bytes
  return { root, fileOf }

  function visit (node: number) {
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

  /** A chain is one way, however long it is. */
  function stepTo (from: Way, label: string, className: string, node: number) {
    let up = from as Way | null
    for (let steps = 1; up && steps <= REPEATS_WITHIN; up = up.parent, steps++) {
      if (isLike(up, { label, className }) && isLike(above(up, steps), up) && isLike(above(from, steps), from))
        return up
    }
    const key = `${label}\0${className}`
    return from.below.get(key) ?? (ways.length < MAX_WAYS ? createWay(label, className, from, node) : from)
  }

  function createWay (label: string, className: string, parent: Way | null, firstNode: number) {
    const way: Way = { index: ways.length, label, className, parent, below: new Map(), count: 0, bytes: 0, firstNode }
    ways.push(way)
    parent?.below.set(`${label}\0${className}`, way)
    return way
  }

  function textOf (string: number) {
    return String(strings[string] ?? '').slice(0, MAX_NAME_CHARS)
  }

  function classOf (node: number) {
    const type = typeNames[nodeTypes[node]]
    return HAVE_CLASSES.has(type) ? textOf(nodeNames[node]) : `(${type})`
  }

  /** The file of the function, or of the module, that is nearest above. */
  function fileOf (way: Way): string | null {
    let node = way.firstNode
    for (let steps = 0; steps < MAX_PATH && node !== 0; node = cameFrom[node], steps++) {
      const file = typeNames[nodeTypes[node]] === 'closure'
        ? fileOfFunction(node)
        : classOf(node) === 'Module'
        ? targetText(targetOf(node, 'filename'))
        : null
      if (file && /^(\/|file:\/\/)/.test(file)) return file.replace(/^file:\/\//, '')
    }
    return null
  }

  function fileOfFunction (node: number) {
    const shared = targetOf(node, 'shared')
    const script = shared === null ? null : targetOf(shared, 'script') ?? targetOf(shared, 'script_or_debug_info')
    return script === null ? null : targetText(targetOf(script, 'name'))
  }

  function targetOf (node: number, name: string): number | null {
    for (let edge = firstEdges[node]; edge < firstEdges[node + 1]; edge++) {
      const type = edgeTypeNames[edgeTypes[edge]]
      if (type !== 'element' && type !== 'hidden' && strings[edgeNames[edge]] === name) return edgeTargets[edge]
    }
    return null
  }

  /** `node`: a text */
  function targetText (node: number | null) {
    return node === null ? null : String(strings[nodeNames[node]] ?? '')
  }
}

function above (way: Way, steps: number): Way | null {
  let at = way as Way | null
  for (let step = 0; step < steps && at; step++) at = at.parent
  return at
}

function isLike (one: Pick<Way, 'label' | 'className'> | null, other: Pick<Way, 'label' | 'className'> | null) {
  return one?.label === other?.label && one?.className === other?.className
}

/**
 * Follows what holds most of the memory, down from each place that holds a part of it. On such a trail the place is
 * meant at which one thing has most objects: a list, a map, a bus of listeners. Without one it is the end, such as a
 * long text.
 */
function listHolders (root: Way): Way[] {
  const least = root.bytes * LEAST_SHARE
  const found: Way[] = []
  const begins = [root]
  for (let begin = begins.pop(); begin; begin = begins.pop()) {
    const trail = trailFrom(begin)
    const many = mostAtOnce(trail)
    const place = many ?? trail[trail.length - 1]
    const parts = partsOf(place, least)
    if (many || parts.length === 0) found.push(place)
    else begins.push(...parts)
    // What hangs beside the trail.
    for (const [index, way] of trail.slice(0, trail.indexOf(place)).entries())
      begins.push(...partsOf(way, least).filter((part) => part !== trail[index + 1]))
  }
  return found
}

/** @returns with that which holds most of each */
function trailFrom (begin: Way): Way[] {
  const trail = [begin]
  for (let way = begin, next; trail.length < MAX_PATH; way = next) {
    next = [...way.below.values()].find(({ bytes }) => bytes >= way.bytes * MOST_OF_IT)
    if (!next) break
    trail.push(next)
  }
  return trail
}

function mostAtOnce (trail: Way[]): Way | undefined {
  const timesOf = ({ count, parent }: Way) => count / Math.max(1, parent?.count ?? 1)
  return trail.filter((way) => timesOf(way) >= MANY).sort((one, other) => timesOf(other) - timesOf(one))[0]
}

function partsOf ({ below }: Way, least: number) {
  return [...below.values()].filter(({ bytes }) => bytes >= least)
}

function pathOf (way: Way): string[] {
  const path = []
  for (let at = way; at?.parent && path.length < MAX_PATH; at = at.parent) path.unshift(at.label)
  return path
}
