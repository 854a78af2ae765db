"use strict";
const form = document.querySelector(".filter");
const nodes = [...document.querySelectorAll(".map li")];
const show = () => {
  const { state, family, name } = Object.fromEntries(new FormData(form));
  let shown = 0;
  for (const node of nodes) {
    node.hidden = (state && !node.classList.contains(state))
      || (family && !node.dataset.families.split(" ").includes(family))
      || !node.textContent.includes(name);
    shown += node.hidden ? 0 : 1;
  }
  form.querySelector("output").textContent = `${shown} of ${nodes.length}`;
};
form.hidden = false;
form.addEventListener("input", show);
form.addEventListener("submit", (event) => event.preventDefault());
show();
