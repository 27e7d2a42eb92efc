import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const css = ['app', 'worker'].map((name) =>
  readFileSync(new URL(`../../../public/${name}.css`, import.meta.url), 'utf8')
).join('')

/** As WCAG has it. */
function contrastOf (one: string, other: string) {
  const [dark, light] = [one, other].map(luminanceOf).sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

function luminanceOf (colour: string) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255).map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  )
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** `rule`: up to its value, as a regular expression. Returns the colours of both themes */
function coloursOf (rule: string): string[] {
  const [, ...both] = new RegExp(`${rule}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\)`).exec(css) ?? []
  return both
}

test('in both themes the labels of a flame graph can be read, and each owner of code stands out from the page', () => {
  const [text, surface] = ['--text', '--surface'].map(coloursOf)
  for (const owner of ['app', 'package', 'node']) {
    const tints = coloursOf(`\\.of-${owner}[^{]*\\{ --tone`)
    assert.equal(tints.length, 2, owner)
    for (const [theme, tint] of tints.entries()) assert.ok(contrastOf(tint, text[theme]) >= 4.5, `${owner} ${tint}`)
    assert.ok(contrastOf(tints[1], surface[1]) >= 1.4, `${owner} in the dark`)
  }
})
