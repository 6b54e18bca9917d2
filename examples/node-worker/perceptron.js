// Training a perceptron: linear layers with ReLU between them, in float32, by gradient descent.
"use strict";

const LEARNING_RATE = 1e-3;

class Refusal extends Error {
  constructor(type, message) {
    super(message);
    this.type = type;
  }
}

// Weights, gradients and buffers of a layer that a request describes.
function linear(described, random) {
  const { kind, config = {}, channels, trailing = [], trainable = true, input_grad: inputGrad = true } = described;
  if (kind !== "linear") throw new Refusal("variant_failed", `this worker has no layer kind ${kind}`);
  const [inputs, outputs] = channels;
  const rows = config.lead.reduce((product, n) => product * n, 1);
  const scale = 1 / Math.sqrt(inputs);
  const drawn = (count, by) => Float32Array.from({ length: count }, () => by * (2 * random() - 1));
  return {
    inputs, outputs, rows, trainable, inputGrad,
    bias: config.bias ? drawn(outputs, scale) : null,
    weights: drawn(inputs * outputs, scale),
    rectifiers: trailing.filter(([op]) => op === "elementwise").length,
    trailing: trailing.map(([op]) => op),
    read: drawn(rows * inputs, 1), // its input where the output of the layer before does not fit
    wrote: new Float32Array(rows * outputs),
    errors: new Float32Array(rows * outputs),
    passedOn: new Float32Array(rows * inputs),
    weightsGradient: new Float32Array(inputs * outputs),
    biasGradient: new Float32Array(outputs),
  };
}

function forward(layer, x) {
  const { inputs, outputs, rows, weights, bias, wrote } = layer;
  for (let r = 0; r < rows; r++) {
    for (let o = 0; o < outputs; o++) {
      let sum = bias ? bias[o] : 0;
      for (let i = 0; i < inputs; i++) sum += x[r * inputs + i] * weights[o * inputs + i];
      wrote[r * outputs + o] = layer.rectifiers && sum < 0 ? 0 : sum;
    }
  }
  return wrote;
}

function backward(layer, x) {
  const { inputs, outputs, rows, weights, errors, wrote, passedOn, weightsGradient, biasGradient } = layer;
  weightsGradient.fill(0);
  biasGradient.fill(0);
  passedOn.fill(0);
  for (let r = 0; r < rows; r++) {
    for (let o = 0; o < outputs; o++) {
      if (layer.rectifiers && wrote[r * outputs + o] === 0) continue;
      const error = errors[r * outputs + o];
      biasGradient[o] += error;
      for (let i = 0; i < inputs; i++) weightsGradient[o * inputs + i] += error * x[r * inputs + i];
      if (layer.inputGrad) for (let i = 0; i < inputs; i++) passedOn[r * inputs + i] += error * weights[o * inputs + i];
    }
  }
}

function update({ trainable, weights, bias, weightsGradient, biasGradient }) {
  if (!trainable) return;
  for (let i = 0; i < weights.length; i++) weights[i] -= LEARNING_RATE * weightsGradient[i];
  if (bias) for (let i = 0; i < bias.length; i++) bias[i] -= LEARNING_RATE * biasGradient[i];
}

// The mean of squares, and its derivative by each output.
function meanOfSquares({ wrote, errors }) {
  let sum = 0;
  for (let i = 0; i < wrote.length; i++) {
    sum += wrote[i] * wrote[i];
    errors[i] = (2 * wrote[i]) / wrote.length;
  }
  return sum / wrote.length;
}

// Cross entropy against classes drawn at random, each row a softmax.
function crossEntropy({ wrote, errors, rows, outputs }, classes) {
  let sum = 0;
  for (let r = 0; r < rows; r++) {
    const row = wrote.subarray(r * outputs, (r + 1) * outputs);
    const largest = Math.max(...row);
    let total = 0;
    for (const value of row) total += Math.exp(value - largest);
    for (let o = 0; o < outputs; o++) {
      errors[r * outputs + o] = (Math.exp(row[o] - largest) / total - (o === classes[r] ? 1 : 0)) / rows;
    }
    sum -= row[classes[r]] - largest - Math.log(total);
  }
  return sum / rows;
}

// {step, loss, parameters}: a network of described layers with its own random data, ready to train.
function build(network, random) {
  const layers = network.layers.map((described) => linear(described, random));
  if (!layers.length) throw new Refusal("variant_failed", "the network has no layers");
  const last = layers[layers.length - 1];
  const classifies = last.trailing.filter((op) => op === "reduce").length > 1; // a softmax, and the mean of its logarithms
  layers.forEach(({ trailing }, index) => {
    const unsupported = trailing.find((op) => op !== "elementwise" && !(op === "reduce" && layers[index] === last));
    if (unsupported) throw new Refusal("variant_failed", `this worker has no ${unsupported} after a linear layer`);
  });
  if (last.trailing.includes("reduce")) last.rectifiers = 0; // an activation before the loss is part of the loss
  const classes = Uint32Array.from({ length: last.rows }, () => Math.floor(random() * last.outputs));
  const fits = (i) => i > 0 && layers[i - 1].wrote.length === layers[i].read.length;
  const training = { loss: NaN };
  training.parameters = layers
    .filter(({ trainable }) => trainable)
    .reduce((sum, { weights, bias }) => sum + weights.length + (bias ? bias.length : 0), 0);
  training.step = () => {
    layers.forEach((layer, i) => forward(layer, fits(i) ? layers[i - 1].wrote : layer.read));
    training.loss = classifies ? crossEntropy(last, classes) : meanOfSquares(last);
    for (let i = layers.length - 1; i >= 0; i--) {
      backward(layers[i], fits(i) ? layers[i - 1].wrote : layers[i].read);
      if (fits(i)) layers[i - 1].errors.set(layers[i].passedOn);
    }
    layers.forEach(update);
  };
  return training;
}

// The yardstick (reference step), of about 2 ms. Changing it invalidates every stored ratio.
function yardstick(random) {
  const layer = (inputs, outputs, trailing, inputGrad) =>
    ({ kind: "linear", config: { lead: [32], bias: true }, channels: [inputs, outputs], trailing, input_grad: inputGrad });
  return build({ layers: [layer(128, 96, [["elementwise"]], false), layer(96, 10, [], true)] }, random);
}

// Pseudorandom numbers, the same in every run.
function seeded(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

module.exports = { Refusal, build, yardstick, seeded };
