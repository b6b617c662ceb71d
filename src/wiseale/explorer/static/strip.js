// A row of small decoded pictures; each is a button that moves the cursor to its code.

import { element } from "./elements.js";
import { picture } from "./picture.js";
import { codeText } from "./numbers.js";

export function strip(app, run, codes, decoded, describe = (z) => `code ${codeText(z)}`) {
  const size = decoded.length / codes.length;
  return codes.map((z, number) => {
    const text = describe(z, number);
    const x = decoded.subarray(number * size, (number + 1) * size);
    const small = picture(app.manifest.observation, x, "");
    small.removeAttribute("role");
    small.removeAttribute("aria-label");
    const button = element("button", { type: "button", title: text, onclick: () => app.goTo(run, z) }, small);
    button.setAttribute("aria-label", `go to ${text}`);
    return button;
  });
}
